#include "client/cpp/kernel_server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/status_macros.h"
#include "phimap/v1/kernel_service.grpc.pb.h"

namespace phimap::client {
namespace {

using Code = grpc::StatusCode;

// A batch, and the memory that the batch views if the message has its examples in another form.
struct OwnedBatch {
  std::optional<Batch> batch;
  std::string widened;
  std::vector<Batch::Entry> entries;
};

template <typename Values>
std::vector<absl::string_view> Views(const Values& values) {
  return {values.begin(), values.end()};
}

grpc::Status Refused(absl::string_view what) { return {Code::INVALID_ARGUMENT, std::string(what)}; }

grpc::Status DenseBatch(const v1::DenseRows& dense, OwnedBatch& out) {
  const int64_t numbers = int64_t{dense.rows()} * dense.columns();
  absl::string_view bytes = dense.float64_le();
  if (dense.rows() < 1 || dense.columns() < 1) return Refused("expected rows and columns");
  if (dense.values_case() == v1::DenseRows::kFloat32Le) {
    if (static_cast<int64_t>(dense.float32_le().size()) != 4 * numbers) {
      return Refused("the number of values is not rows × columns");
    }
    out.widened.resize(static_cast<size_t>(8 * numbers));
    for (int64_t k = 0; k < numbers; ++k) {
      float value = 0;
      std::memcpy(&value, dense.float32_le().data() + 4 * k, sizeof(value));
      const double wide = value;
      std::memcpy(out.widened.data() + 8 * k, &wide, sizeof(wide));
    }
    bytes = out.widened;
  } else if (dense.values_case() != v1::DenseRows::kFloat64Le) {
    return Refused("expected float32_le or float64_le");
  }
  if (static_cast<int64_t>(bytes.size()) != 8 * numbers) {
    return Refused("the number of values is not rows × columns");
  }
  std::vector<absl::string_view> rows;
  const size_t row_bytes = 8 * static_cast<size_t>(dense.columns());
  for (size_t at = 0; at < bytes.size(); at += row_bytes) {
    rows.push_back(bytes.substr(at, row_bytes));
  }
  out.batch.emplace(Batch::Kind::kDense, dense.columns(), std::move(rows));
  return grpc::Status::OK;
}

template <typename T>
T NumberAt(const std::string& bytes, int64_t i) {
  T number;
  std::memcpy(&number, bytes.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return number;
}

grpc::Status SparseBatch(const v1::SparseRows& sparse, OwnedBatch& out) {
  const std::string& offsets = sparse.row_offsets_le();
  const std::string& columns = sparse.column_indices_le();
  const std::string& values = sparse.float64_le();
  const size_t entries = columns.size() / sizeof(int32_t);
  if (sparse.rows() < 1 || sparse.columns() < 1) return Refused("expected rows and columns");
  if (offsets.size() != 8 * (static_cast<size_t>(sparse.rows()) + 1) ||
      columns.size() != 4 * entries || values.size() != 8 * entries) {
    return Refused(
        "expected an offset for each row and one for the end, and a float64 value for each index");
  }
  out.entries.resize(entries);
  int64_t end = 0;
  std::vector<absl::Span<const Batch::Entry>> rows;
  for (int64_t i = 0; i < sparse.rows(); ++i) {
    const int64_t begin = end;
    end = NumberAt<int64_t>(offsets, i + 1);
    if (NumberAt<int64_t>(offsets, i) != begin || end < begin ||
        end > static_cast<int64_t>(entries)) {
      return Refused("expected offsets that rise from 0 to the number of entries");
    }
    int32_t last = -1;
    for (int64_t e = begin; e < end; ++e) {
      const auto column = NumberAt<int32_t>(columns, e);
      if (column <= last || column >= sparse.columns())
        return Refused("expected columns that exist and rise within a row");
      out.entries[static_cast<size_t>(e)] = {column, NumberAt<double>(values, e)};
      last = column;
    }
    rows.push_back(absl::MakeConstSpan(out.entries)
                       .subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  }
  if (end != static_cast<int64_t>(entries)) return Refused("there are entries after the last row");
  out.batch.emplace(sparse.columns(), std::move(rows));
  return grpc::Status::OK;
}

grpc::Status BatchOf(const v1::Examples& examples, OwnedBatch& out) {
  switch (examples.kind_case()) {
    case v1::Examples::kDense:
      return DenseBatch(examples.dense(), out);
    case v1::Examples::kSparse:
      return SparseBatch(examples.sparse(), out);
    case v1::Examples::kBytes:
      out.batch.emplace(Batch::Kind::kBytes, 0, Views(examples.bytes().values()));
      return grpc::Status::OK;
    case v1::Examples::kText:
      out.batch.emplace(Batch::Kind::kText, 0, Views(examples.text().values()));
      return grpc::Status::OK;
    case v1::Examples::KIND_NOT_SET:
      break;
  }
  return Refused("expected dense rows, sparse rows, bytes or text");
}

// The right-hand examples of requests that clients have sent, by digest. The least recently used
// are evicted first. Thread-safe.
class RememberedExamples {
 public:
  using Examples = std::shared_ptr<const v1::Examples>;

  explicit RememberedExamples(int64_t max_bytes) : max_bytes_(max_bytes) {}

  Examples Find(const std::string& digest) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = index_.find(digest);
    if (found == index_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->examples;
  }

  void Keep(const std::string& digest, Examples examples) {
    const auto bytes = static_cast<int64_t>(examples->ByteSizeLong());
    const std::lock_guard<std::mutex> lock(mutex_);
    if (index_.contains(digest)) return;
    while (!recent_.empty() && bytes_ + bytes > max_bytes_) {
      bytes_ -= recent_.back().bytes;
      index_.erase(recent_.back().digest);
      recent_.pop_back();
    }
    bytes_ += bytes;
    recent_.push_front({digest, std::move(examples), bytes});
    index_[digest] = recent_.begin();
  }

  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    index_.clear();
    recent_.clear();
    bytes_ = 0;
  }

 private:
  struct Entry {
    std::string digest;
    Examples examples;
    int64_t bytes = 0;
  };

  const int64_t max_bytes_;
  std::mutex mutex_;
  std::list<Entry> recent_;
  absl::flat_hash_map<std::string, std::list<Entry>::iterator> index_;
  int64_t bytes_ = 0;
};

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // To phimapd, NOT_FOUND means that it must send the right examples again.
  const auto code =
      absl::IsNotFound(status) ? Code::FAILED_PRECONDITION : static_cast<Code>(status.code());
  return {code, std::string(status.message())};
}

}  // namespace

Batch Batch::Only(size_t i) const {
  return kind_ == Kind::kSparse ? Batch(columns_, {rows_[i]})
                                : Batch(kind_, columns_, {examples_[i]});
}

double Batch::number(size_t i, int64_t j) const {
  if (kind_ == Kind::kSparse) {
    const auto found =
        std::lower_bound(rows_[i].begin(), rows_[i].end(), j,
                         [](const Entry& entry, int64_t column) { return entry.column < column; });
    return found != rows_[i].end() && found->column == j ? found->value : 0;
  }
  double value = 0;
  std::memcpy(&value, examples_[i].data() + 8 * j, sizeof(value));
  return value;
}

class KernelServer::Service final : public v1::KernelService::Service {
 public:
  explicit Service(Options options)
      : options_(std::move(options)), remembered_(options_.remembered_bytes) {}

  grpc::Status ComputeBlock(grpc::ServerContext*, const v1::ComputeBlockRequest* request,
                            v1::ComputeBlockResponse* response) override {
    const grpc::Status status = Compute(*request, *response);
    ++calls_;
    return status;
  }

  int64_t calls() const { return calls_; }
  void Forget() { remembered_.Clear(); }

 private:
  grpc::Status Compute(const v1::ComputeBlockRequest& request, v1::ComputeBlockResponse& response) {
    const auto kernel = options_.kernels.find(request.kernel());
    if (kernel == options_.kernels.end()) {
      return Refused(absl::StrCat(
          "there is no kernel \"", request.kernel(), "\" on this server; it has ",
          absl::StrJoin(options_.kernels, ", ",
                        [](std::string* out, const auto& entry) { out->append(entry.first); })));
    }
    RememberedExamples::Examples columns;
    if (grpc::Status status = TakeRight(request, columns); !status.ok()) return status;
    OwnedBatch left;
    OwnedBatch right;
    if (grpc::Status status = BatchOf(request.left(), left); !status.ok()) return status;
    if (grpc::Status status = BatchOf(*columns, right); !status.ok()) return status;
    if (left.batch->kind() != right.batch->kind() ||
        left.batch->columns() != right.batch->columns()) {
      return Refused(
          "left and right have examples of different kinds, or different numbers of columns");
    }
    const auto rows = left.batch->size();
    const auto cols = right.batch->size();
    response.mutable_block()->set_rows(static_cast<int>(rows));
    response.mutable_block()->set_columns(static_cast<int>(cols));
    std::vector<double> values(rows * cols);
    if (absl::Status s = kernel->second(*left.batch, *right.batch, values.data()); !s.ok()) {
      return ToGrpc(s);
    }
    response.mutable_block()->set_float64_le(reinterpret_cast<const char*>(values.data()),
                                             values.size() * sizeof(double));
    if (!request.want_diagonal()) return grpc::Status::OK;
    return Diagonal(kernel->first, kernel->second, *left.batch, response);
  }

  grpc::Status TakeRight(const v1::ComputeBlockRequest& request,
                         RememberedExamples::Examples& columns) {
    switch (request.right_case()) {
      case v1::ComputeBlockRequest::kRightExamples:
        columns = std::make_shared<const v1::Examples>(request.right_examples());
        if (!request.right_digest().empty()) remembered_.Keep(request.right_digest(), columns);
        return grpc::Status::OK;
      case v1::ComputeBlockRequest::kKnownRightDigest:
        columns = remembered_.Find(request.known_right_digest());
        if (columns != nullptr) return grpc::Status::OK;
        return {Code::NOT_FOUND, "this server does not have the right examples; send them"};
      case v1::ComputeBlockRequest::RIGHT_NOT_SET:
        break;
    }
    return Refused("expected right_examples or known_right_digest");
  }

  grpc::Status Diagonal(const std::string& name, const KernelFunction& kernel, const Batch& left,
                        v1::ComputeBlockResponse& response) const {
    std::vector<double> values(left.size());
    const auto diagonal = options_.diagonals.find(name);
    if (diagonal != options_.diagonals.end()) {
      if (absl::Status s = diagonal->second(left, values.data()); !s.ok()) return ToGrpc(s);
    }
    for (size_t i = 0; diagonal == options_.diagonals.end() && i < left.size(); ++i) {
      const Batch one = left.Only(i);
      if (absl::Status s = kernel(one, one, &values[i]); !s.ok()) return ToGrpc(s);
    }
    response.set_diagonal_float64_le(reinterpret_cast<const char*>(values.data()),
                                     values.size() * sizeof(double));
    return grpc::Status::OK;
  }

  const Options options_;
  RememberedExamples remembered_;
  std::atomic<int64_t> calls_{0};
};

struct KernelServer::Grpc {
  std::unique_ptr<grpc::Server> server;
};

KernelServer::KernelServer() = default;
KernelServer::~KernelServer() { Stop(); }

absl::StatusOr<std::unique_ptr<KernelServer>> KernelServer::Start(Options options) {
  if (options.kernels.empty()) return absl::InvalidArgumentError("expected at least one kernel");
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (!options.certificate.empty()) {
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({options.key, options.certificate});
    credentials = grpc::SslServerCredentials(tls);
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen, credentials, &port);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(options.max_message_bytes);
  // Without this, another process could listen on the same port and receive calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(options.max_threads);
  builder.SetResourceQuota(quota);
  auto server = std::unique_ptr<KernelServer>(new KernelServer());
  const std::string listen = options.listen;
  server->service_ = std::make_unique<Service>(std::move(options));
  builder.RegisterService(server->service_.get());
  server->grpc_ = std::make_unique<Grpc>(Grpc{builder.BuildAndStart()});
  if (server->grpc_->server == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", listen));
  }
  server->address_ = absl::StartsWith(listen, "unix:")
                         ? listen
                         : absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
  return server;
}

int64_t KernelServer::calls() const { return service_->calls(); }
void KernelServer::Forget() { service_->Forget(); }
void KernelServer::Wait() { grpc_->server->Wait(); }

void KernelServer::Stop() {
  if (grpc_ == nullptr || grpc_->server == nullptr) return;
  grpc_->server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace phimap::client
