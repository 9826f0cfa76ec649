// A kernel service whose answers a test writes, on a free port of this process.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_SCRIPTED_KERNEL_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_SCRIPTED_KERNEL_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/check.h"
#include "grpcpp/grpcpp.h"
#include "phimap/v1/kernel_service.grpc.pb.h"
#include "server/sync/mutex.h"

namespace phimap::testing {

class ScriptedKernel final : public v1::KernelService::Service {
 public:
  // Changes a right answer, or puts an error in its place.
  using Script =
      std::function<grpc::Status(const v1::ComputeBlockRequest&, v1::ComputeBlockResponse&)>;

  explicit ScriptedKernel(std::string address = "127.0.0.1:0") : address_(std::move(address)) {
    Start();
  }
  ~ScriptedKernel() override { Stop(); }

  const std::string& address() const { return address_; }
  // Where it was, with nothing in its memory.
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
  // Calls that came, those that were answered NOT_FOUND included.
  int calls() const {
    MutexLock lock(&mutex_);
    return calls_;
  }

  grpc::Status ComputeBlock(grpc::ServerContext*, const v1::ComputeBlockRequest* request,
                            v1::ComputeBlockResponse* response) override {
    v1::Examples right;
    Script script;
    {
      MutexLock lock(&mutex_);
      ++calls_;
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

  // exp(-‖x − y‖²/5).
  static double Kernel(const double* x, const double* y, int columns) {
    double square = 0;
    for (int k = 0; k < columns; ++k) square += (x[k] - y[k]) * (x[k] - y[k]);
    return std::exp(-0.2 * square);
  }

 private:
  static std::vector<double> NumbersOf(const v1::Examples& examples) {
    const std::string& bytes = examples.dense().float64_le();
    std::vector<double> numbers(bytes.size() / sizeof(double));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }

  static void Compute(const v1::ComputeBlockRequest& request, const v1::Examples& right,
                      v1::ComputeBlockResponse& response) {
    const int columns = right.dense().columns();
    const std::vector<double> x = NumbersOf(request.left());
    const std::vector<double> y = NumbersOf(right);
    std::vector<double> block;
    std::vector<double> diagonal;
    for (int i = 0; i < request.left().dense().rows(); ++i) {
      for (int j = 0; j < right.dense().rows(); ++j) {
        block.push_back(Kernel(&x[i * columns], &y[j * columns], columns));
      }
      diagonal.push_back(1);
    }
    response.mutable_block()->set_rows(request.left().dense().rows());
    response.mutable_block()->set_columns(right.dense().rows());
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
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_SCRIPTED_KERNEL_H_
