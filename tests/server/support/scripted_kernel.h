// A kernel service whose answers a test can change. It runs in this process, on a free port.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_SCRIPTED_KERNEL_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_SCRIPTED_KERNEL_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/check.h"
#include "core/thread/mutex.h"
#include "grpcpp/grpcpp.h"
#include "phimap/v1/kernel_service.grpc.pb.h"

namespace phimap::testing {

class ScriptedKernel final : public v1::KernelService::Service {
 public:
  // Changes a correct answer, or returns an error to send in place of the answer.
  using Script =
      std::function<grpc::Status(const v1::ComputeBlockRequest&, v1::ComputeBlockResponse&)>;

  explicit ScriptedKernel(std::string address = "127.0.0.1:0") : address_(std::move(address)) {
    Start();
  }
  ~ScriptedKernel() override { Stop(); }

  const std::string& address() const { return address_; }
  // Starts the service again, at the same address as before. It remembers no examples from before.
  void Start() {
    {
      MutexLock lock(&mutex_);
      known_.clear();
    }
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    PHIMAP_CHECK(server_ != nullptr && port > 0);
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(absl::ToChronoTime(absl::Now()));
    server_.reset();
  }
  void Say(Script script) {
    MutexLock lock(&mutex_);
    script_ = std::move(script);
  }
  void Forget() {
    MutexLock lock(&mutex_);
    known_.clear();
  }
  // The number of calls received, including those answered with NOT_FOUND.
  int calls() const {
    MutexLock lock(&mutex_);
    return calls_;
  }

  // The headers traceparent of the calls received.
  std::vector<std::string> trace_parents() const {
    MutexLock lock(&mutex_);
    return trace_parents_;
  }

  grpc::Status ComputeBlock(grpc::ServerContext* context, const v1::ComputeBlockRequest* request,
                            v1::ComputeBlockResponse* response) override {
    v1::Examples right;
    Script script;
    {
      MutexLock lock(&mutex_);
      ++calls_;
      for (const auto& [key, value] : context->client_metadata()) {
        if (key == "traceparent") trace_parents_.emplace_back(value.data(), value.size());
      }
      script = script_;
      if (request->has_right_examples()) {
        right = known_[request->right_digest()] = request->right_examples();
      } else if (const auto found = known_.find(request->known_right_digest());
                 found != known_.end()) {
        right = found->second;
      } else {
        return {grpc::StatusCode::NOT_FOUND, "send them"};
      }
    }
    Compute(*request, right, *response);
    return script ? script(*request, *response) : grpc::Status::OK;
  }

  // The kernel exp(-‖x − y‖²/5).
  static double Kernel(const double* x, const double* y, int columns) {
    double square = 0;
    for (int k = 0; k < columns; ++k) square += (x[k] - y[k]) * (x[k] - y[k]);
    return std::exp(-0.2 * square);
  }

 private:
  using Rows = std::vector<std::vector<double>>;

  template <typename T>
  static std::vector<T> ArrayOf(const std::string& bytes) {
    std::vector<T> numbers(bytes.size() / sizeof(T));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  // Converts each string, which contains decimal numbers, to a row.
  template <typename Strings>
  static Rows RowsOfStrings(const Strings& strings) {
    Rows rows;
    for (const std::string& string : strings) {
      std::istringstream words(string);
      rows.emplace_back(std::istream_iterator<double>(words), std::istream_iterator<double>());
    }
    return rows;
  }
  static Rows RowsOf(const v1::Examples& examples) {
    if (examples.has_text()) return RowsOfStrings(examples.text().values());
    if (examples.has_bytes()) return RowsOfStrings(examples.bytes().values());
    if (examples.has_sparse()) {
      const v1::SparseRows& sparse = examples.sparse();
      const auto offsets = ArrayOf<int64_t>(sparse.row_offsets_le());
      const auto columns = ArrayOf<int32_t>(sparse.column_indices_le());
      const auto values = ArrayOf<double>(sparse.float64_le());
      Rows rows(sparse.rows(), std::vector<double>(sparse.columns()));
      for (int i = 0; i < sparse.rows(); ++i) {
        for (int64_t e = offsets[i]; e < offsets[i + 1]; ++e) rows[i][columns[e]] = values[e];
      }
      return rows;
    }
    const auto numbers = ArrayOf<double>(examples.dense().float64_le());
    Rows rows;
    for (int i = 0; i < examples.dense().rows(); ++i) {
      const auto begin = numbers.begin() + i * examples.dense().columns();
      rows.emplace_back(begin, begin + examples.dense().columns());
    }
    return rows;
  }

  static void Compute(const v1::ComputeBlockRequest& request, const v1::Examples& right,
                      v1::ComputeBlockResponse& response) {
    const Rows x = RowsOf(request.left());
    const Rows y = RowsOf(right);
    std::vector<double> block;
    std::vector<double> diagonal;
    for (const std::vector<double>& row : x) {
      for (const std::vector<double>& column : y) {
        block.push_back(Kernel(row.data(), column.data(), static_cast<int>(row.size())));
      }
      diagonal.push_back(1);
    }
    response.mutable_block()->set_rows(static_cast<int>(x.size()));
    response.mutable_block()->set_columns(static_cast<int>(y.size()));
    response.mutable_block()->set_float64_le(block.data(), block.size() * sizeof(double));
    if (request.want_diagonal()) {
      response.set_diagonal_float64_le(diagonal.data(), diagonal.size() * sizeof(double));
    }
  }

  std::string address_;
  std::unique_ptr<grpc::Server> server_;
  mutable Mutex mutex_;
  Script script_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, v1::Examples> known_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> trace_parents_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_SCRIPTED_KERNEL_H_
