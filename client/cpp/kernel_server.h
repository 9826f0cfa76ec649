// A kernel of your own, served to phimapd: functions of two batches of examples become a kernel
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
// with phimapd --kernel_service=words=127.0.0.1:9000, and then the kernel
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

// Examples of one kind, as they were streamed to Build. A view of a message that is valid only
// during the call.
class Batch {
 public:
  enum class Kind { kDense, kSparse, kBytes, kText };
  // A number of a sparse row. Entries of a row are in the order of their columns.
  struct Entry {
    int32_t column = 0;
    double value = 0;
  };

  Batch(Kind kind, int64_t columns, std::vector<absl::string_view> examples)
      : kind_(kind), columns_(columns), examples_(std::move(examples)) {}
  // A batch of sparse rows, whose entries outlive it.
  Batch(int64_t columns, std::vector<absl::Span<const Entry>> rows)
      : kind_(Kind::kSparse), columns_(columns), rows_(std::move(rows)) {}

  Kind kind() const { return kind_; }
  size_t size() const { return kind_ == Kind::kSparse ? rows_.size() : examples_.size(); }
  // Numbers of a row, dense or sparse; 0 for strings.
  int64_t columns() const { return columns_; }
  // Bytes or text; for a dense row its columns() float64 numbers, at any alignment.
  absl::string_view operator[](size_t i) const { return examples_[i]; }
  // Entries of sparse row i that are not 0.
  absl::Span<const Entry> entries(size_t i) const { return rows_[i]; }
  // Number j of row i, dense or sparse (by a binary search).
  double number(size_t i, int64_t j) const;
  // Example i alone.
  Batch Only(size_t i) const;

 private:
  const Kind kind_;
  const int64_t columns_;
  const std::vector<absl::string_view> examples_;
  const std::vector<absl::Span<const Entry>> rows_;
};

// Writes K(left_i, right_j) to block[i · right.size() + j]. Must be a pure function of its
// arguments; called by several threads at a time. An error ends the call, for instance
// INVALID_ARGUMENT for unsupported examples. phimapd refuses values that are not finite.
using KernelFunction =
    std::function<absl::Status(const Batch& left, const Batch& right, double* block)>;

// Thread-safe.
class KernelServer {
 public:
  struct Options {
    // "HOST:PORT" or "unix:PATH"; port 0 picks a free port. There is no token: every client that
    // can connect may call.
    std::string listen = "127.0.0.1:0";
    // PEM; both empty: not encrypted.
    std::string certificate;
    std::string key;
    std::map<std::string, KernelFunction> kernels;
    // By kernel: a function for K(x, x) of each example, if that is cheaper than the kernel on x
    // and x.
    std::map<std::string, std::function<absl::Status(const Batch& examples, double* values)>>
        diagonals;
    // Memory for columns of earlier blocks, to which later calls may refer. The least recently used
    // are dropped.
    int64_t remembered_bytes = int64_t{256} << 20;
    int max_threads = 16;
    int max_message_bytes = 64 << 20;
  };

  // Listens and serves. Errors: INVALID_ARGUMENT (no kernels), UNAVAILABLE (the address cannot be
  // bound).
  static absl::StatusOr<std::unique_ptr<KernelServer>> Start(Options options);
  // Stops at once.
  ~KernelServer();
  KernelServer(const KernelServer&) = delete;
  KernelServer& operator=(const KernelServer&) = delete;

  // The address with the actual port.
  const std::string& address() const { return address_; }
  // Number of answered calls, errors included.
  int64_t calls() const;
  // Waits until Stop is called on another thread.
  void Wait();
  void Stop();
  // Drops all remembered columns: the next call that refers to them gets NOT_FOUND.
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
