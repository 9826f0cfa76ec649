// Serves your own kernels to phimapd: turns functions of two batches of examples into a kernel
// service.
//
// Example:
//   absl::StatusOr<std::unique_ptr<KernelServer>> server = KernelServer::Start(
//       {.listen = "127.0.0.1:9000",
//        .kernels = {{"overlap", [](const Batch& left, const Batch& right, double* block) {
//          for (size_t i = 0; i < left.size(); ++i)
//            for (size_t j = 0; j < right.size(); ++j) *block++ = Overlap(left[i], right[j]);
//          return absl::OkStatus();
//        }}}});
//   (*server)->Wait();
//
// Start phimapd with --kernel_service=words=127.0.0.1:9000, then use the kernel
// service(endpoint=words, kernel=overlap).
#ifndef PHIMAP_CLIENT_CPP_KERNEL_SERVER_H_
#define PHIMAP_CLIENT_CPP_KERNEL_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace phimap::client {

// Examples of one kind, in the form in which they were streamed to Build. A batch is a view of a
// message and is valid only during the call.
class Batch {
 public:
  enum class Kind { kDense, kSparse, kBytes, kText };
  // A number of a sparse row. The entries of a row are in the order of their columns.
  struct Entry {
    int32_t column = 0;
    double value = 0;
  };

  Batch(Kind kind, int64_t columns, std::vector<absl::string_view> examples)
      : kind_(kind), columns_(columns), examples_(std::move(examples)) {}
  // Creates a batch of sparse rows. The entries must outlive the batch.
  Batch(int64_t columns, std::vector<absl::Span<const Entry>> rows)
      : kind_(Kind::kSparse), columns_(columns), rows_(std::move(rows)) {}

  Kind kind() const { return kind_; }
  size_t size() const { return kind_ == Kind::kSparse ? rows_.size() : examples_.size(); }
  // Number of columns of dense or sparse rows; 0 for strings.
  int64_t columns() const { return columns_; }
  // Example i: its bytes or text, or a dense row's columns() float64 numbers, at any alignment.
  // REQUIRES: the batch is not sparse.
  absl::string_view operator[](size_t i) const { return examples_[i]; }
  // The entries of sparse row i; its other numbers are 0.
  absl::Span<const Entry> entries(size_t i) const { return rows_[i]; }
  // Number j of row i, dense or sparse. In a sparse row it is found by binary search.
  double number(size_t i, int64_t j) const;
  // Returns a batch of example i alone.
  Batch Only(size_t i) const;

 private:
  const Kind kind_;
  const int64_t columns_;
  const std::vector<absl::string_view> examples_;
  const std::vector<absl::Span<const Entry>> rows_;
};

// Computes a block of kernel values: writes K(left_i, right_j) to block[i · right.size() + j] for
// all i and j. Must be a pure function of its arguments, because several threads call it at the
// same time. An error becomes the error of the call. For example, INVALID_ARGUMENT means that the
// kernel cannot compare these examples. phimapd rejects values that are not finite.
using KernelFunction =
    std::function<absl::Status(const Batch& left, const Batch& right, double* block)>;

// Thread-safe.
class KernelServer {
 public:
  struct Options {
    // "HOST:PORT" or "unix:PATH"; port 0 picks a free port. Calls are not authenticated by a token:
    // every client that can connect can call.
    std::string listen = "127.0.0.1:0";
    // TLS certificate and its key, as PEM text. If both are empty, connections are not encrypted.
    std::string certificate;
    std::string key;
    std::map<std::string, KernelFunction> kernels;
    // Functions that write K(x, x) of each example, by name of the kernel. Optional: useful if this
    // is cheaper than calling the kernel with x and x.
    std::map<std::string, std::function<absl::Status(const Batch& examples, double* values)>>
        diagonals;
    // Memory for right examples that are kept, so that later calls can refer to them by digest. The
    // least recently used are evicted first.
    int64_t remembered_bytes = int64_t{256} << 20;
    int max_threads = 16;
    int max_message_bytes = 64 << 20;
  };

  // Listens and serves. Errors: INVALID_ARGUMENT (no kernels), UNAVAILABLE (the address cannot be
  // bound).
  static absl::StatusOr<std::unique_ptr<KernelServer>> Start(Options options);
  // Stops the server at once.
  ~KernelServer();
  KernelServer(const KernelServer&) = delete;
  KernelServer& operator=(const KernelServer&) = delete;

  // The address of the server, with the actual port if Options::listen has port 0.
  const std::string& address() const { return address_; }
  // Number of answered calls, errors included.
  int64_t calls() const;
  // Blocks until Stop is called on another thread.
  void Wait();
  void Stop();
  // Forgets the right examples that were kept. The next call that refers to them by digest gets
  // NOT_FOUND.
  void Forget();

 private:
  class Service;
  struct Grpc;
  KernelServer();

  std::string address_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Grpc> grpc_;
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_KERNEL_SERVER_H_
