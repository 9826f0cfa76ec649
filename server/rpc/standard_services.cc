#include "server/rpc/standard_services.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/rpc/call.h"

namespace phimap {

HealthStatus::HealthStatus(const std::vector<std::string>& services) {
  serving_.emplace("", false);
  for (const std::string& service : services) serving_.emplace(service, false);
}

HealthStatus::~HealthStatus() { PHIMAP_CHECK(watchers_.empty()); }

void HealthStatus::SetServing(bool serving) {
  MutexLock lock(&mutex_);
  for (auto& [name, now] : serving_) now = serving;
  TellAll();
}

void HealthStatus::SetServing(absl::string_view service, bool serving) {
  MutexLock lock(&mutex_);
  const auto found = serving_.find(service);
  PHIMAP_CHECK(found != serving_.end());
  found->second = serving;
  TellAll();
}

HealthStatus::Serving HealthStatus::Of(absl::string_view service) const {
  using Response = grpc::health::v1::HealthCheckResponse;
  MutexLock lock(&mutex_);
  const auto found = serving_.find(service);
  if (found == serving_.end()) return Response::SERVICE_UNKNOWN;
  return found->second ? Response::SERVING : Response::NOT_SERVING;
}

void HealthStatus::EndWatches() {
  MutexLock lock(&mutex_);
  watches_ended_ = true;
  TellAll();
}

bool HealthStatus::watches_ended() const {
  MutexLock lock(&mutex_);
  return watches_ended_;
}

void HealthStatus::Watch(Watcher& watcher) {
  MutexLock lock(&mutex_);
  watchers_.insert(&watcher);
}

void HealthStatus::Unwatch(Watcher& watcher) {
  MutexLock lock(&mutex_);
  watchers_.erase(&watcher);
}

// Runs under the lock, so that no watcher is called after its Unwatch has returned.
void HealthStatus::TellAll() {
  for (Watcher* const watcher : watchers_) watcher->OnHealthChange();
}

namespace {

// Maximum size of a request, which only names a service. Requests this small are accepted even
// without capacity, so that health checks always work.
constexpr int64_t kMaxHealthRequestBytes = 4 << 10;

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Maximum time for the client to send its request, or to read an answer.
constexpr absl::Duration kWatchIdleLimit = absl::Minutes(1);

class CheckCall final : public TypedUnaryCall<HealthCheckRequest, HealthCheckResponse> {
 public:
  CheckCall(const CallStart& start, const HealthStatus& status)
      : TypedUnaryCall(start), status_(status) {}

 private:
  void Start() override {
    const HealthStatus::Serving serving = status_.Of(request().service());
    if (serving != HealthCheckResponse::SERVICE_UNKNOWN) {
      response().set_status(serving);
      return Finish(absl::OkStatus());
    }
    Finish(MakeError(absl::StatusCode::kNotFound, reason::kServiceUnknown, "service",
                     absl::StrCat("this server has no service ", Quoted(request().service()),
                                  "; expected a full name such as \"phimap.v1.TransformService\", "
                                  "or nothing for the server as a whole")));
  }

  const HealthStatus& status_;
};

class WatchCall final : public TypedStreamCall<HealthCheckRequest>, private HealthStatus::Watcher {
 public:
  WatchCall(const CallStart& start, HealthStatus& status)
      : TypedStreamCall(start), status_(status) {}

 private:
  void Start() override {
    SetIdleLimit(kWatchIdleLimit);
    ReadNext();
  }
  // Watches before Tell reads the status, so that no change is missed in between.
  void OnRequest() override {
    status_.Watch(*this);
    Tell();
  }
  void OnRequestsEnd() override { Finish(WrongMessageCount(request().GetTypeName(), "none")); }
  void OnWritten() override { Tell(); }
  void OnHealthChange() override {
    Post([this] { Tell(); });
  }
  void OnEnd(const absl::Status&) override { status_.Unwatch(*this); }

  // Sends the status if the client does not know it yet. If the status changes faster than the
  // client reads, only the last change is sent.
  void Tell() {
    if (finishing()) return;
    const bool ended = status_.watches_ended();
    const HealthStatus::Serving serving = status_.Of(request().service());
    if (!writing() && told_ != serving) {
      told_ = serving;
      HealthCheckResponse response;
      response.set_status(serving);
      Write(response);
    }
    if (ended) Finish(ShuttingDown());
  }

  HealthStatus& status_;
  std::optional<HealthStatus::Serving> told_;
};

}  // namespace

void AddHealthService(HealthStatus& status, Dispatcher& dispatcher) {
  const google::protobuf::FileDescriptor* const file = HealthCheckRequest::descriptor()->file();
  dispatcher.Add(*file->FindServiceByName("Health"),
                 {{"Check", Opens<CheckCall>(status)}, {"Watch", Opens<WatchCall>(status)}},
                 Dispatcher::Access::kOpenToAll, kMaxHealthRequestBytes);
}

namespace {

// The proto files of the services that a server has.
//
// The schema has its own descriptor pool, for two reasons. protobuf's pool of generated files
// remembers every unknown name that it was asked for, so a stranger could fill the memory with
// names. And files that are linked but not served should not be visible. Immutable, hence
// thread-safe.
class ServedSchema {
 public:
  // A file, followed by its direct and indirect imports: serialized FileDescriptorProtos.
  using Files = std::vector<std::string>;

  // `services` are full names. REQUIRES: each of them has generated code.
  explicit ServedSchema(const std::vector<std::string>& services);

  const std::vector<std::string>& services() const { return services_; }
  // All of these return NOT_FOUND for a name that no file has.
  absl::StatusOr<Files> FileNamed(const std::string& name) const;
  absl::StatusOr<Files> FileWithSymbol(const std::string& symbol) const;
  absl::StatusOr<Files> FileWithExtension(const std::string& type, int number) const;
  // Returns the numbers in ascending order.
  absl::StatusOr<std::vector<int>> ExtensionsOf(const std::string& type) const;

 private:
  // Adds the file and its imports.
  void Add(const google::protobuf::FileDescriptor& file);
  Files WithImports(const google::protobuf::FileDescriptor& file) const;

  const std::vector<std::string> services_;
  google::protobuf::DescriptorPool pool_;
  // Keyed by name.
  std::map<std::string, std::string> files_;
};

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

absl::Status NotServed(const char* what, const std::string& name) {
  return MakeError(absl::StatusCode::kNotFound, reason::kSchemaNotFound, "",
                   absl::StrCat("this server's services have no ", what, " ", Quoted(name)));
}

ServedSchema::ServedSchema(const std::vector<std::string>& services) : services_(services) {
  for (const std::string& name : services_) {
    const auto* const service = DescriptorPool::generated_pool()->FindServiceByName(name);
    PHIMAP_CHECK(service != nullptr);
    Add(*service->file());
  }
}

void ServedSchema::Add(const FileDescriptor& file) {
  if (files_.count(file.name()) > 0) return;
  for (int i = 0; i < file.dependency_count(); ++i) Add(*file.dependency(i));
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  PHIMAP_CHECK(pool_.BuildFile(proto) != nullptr);
  files_.emplace(file.name(), proto.SerializeAsString());
}

ServedSchema::Files ServedSchema::WithImports(const FileDescriptor& file) const {
  std::vector<const FileDescriptor*> order = {&file};
  std::set<const FileDescriptor*> seen = {&file};
  Files files;
  for (size_t i = 0; i < order.size(); ++i) {
    const FileDescriptor& next = *order[i];
    files.push_back(files_.at(next.name()));
    for (int k = 0; k < next.dependency_count(); ++k) {
      if (seen.insert(next.dependency(k)).second) order.push_back(next.dependency(k));
    }
  }
  return files;
}

absl::StatusOr<ServedSchema::Files> ServedSchema::FileNamed(const std::string& name) const {
  const FileDescriptor* const file = pool_.FindFileByName(name);
  if (file == nullptr) return NotServed("file", name);
  return WithImports(*file);
}

absl::StatusOr<ServedSchema::Files> ServedSchema::FileWithSymbol(const std::string& symbol) const {
  const FileDescriptor* const file = pool_.FindFileContainingSymbol(symbol);
  if (file == nullptr) return NotServed("symbol", symbol);
  return WithImports(*file);
}

absl::StatusOr<ServedSchema::Files> ServedSchema::FileWithExtension(const std::string& type,
                                                                    int number) const {
  const Descriptor* const message = pool_.FindMessageTypeByName(type);
  if (message == nullptr) return NotServed("message", type);
  const FieldDescriptor* const extension = pool_.FindExtensionByNumber(message, number);
  if (extension == nullptr) return NotServed("extension", absl::StrCat(type, " ", number));
  return WithImports(*extension->file());
}

absl::StatusOr<std::vector<int>> ServedSchema::ExtensionsOf(const std::string& type) const {
  const Descriptor* const message = pool_.FindMessageTypeByName(type);
  if (message == nullptr) return NotServed("message", type);
  std::vector<const FieldDescriptor*> extensions;
  pool_.FindAllExtensions(message, &extensions);
  std::vector<int> numbers;
  for (const FieldDescriptor* const extension : extensions) numbers.push_back(extension->number());
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

// Tools keep a stream open for as long as a person reads the answer.
constexpr absl::Duration kReflectionIdleLimit = absl::Minutes(5);

void SetError(const absl::Status& status, ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(static_cast<int>(status.code()));
  response.mutable_error_response()->set_error_message(std::string(status.message()));
}

void SetFiles(const absl::StatusOr<ServedSchema::Files>& files,
              ServerReflectionResponse& response) {
  if (!files.ok()) return SetError(files.status(), response);
  for (const std::string& file : *files) {
    response.mutable_file_descriptor_response()->add_file_descriptor_proto(file);
  }
}

void SetExtensions(const ServedSchema& schema, const std::string& type,
                   ServerReflectionResponse& response) {
  const absl::StatusOr<std::vector<int>> numbers = schema.ExtensionsOf(type);
  if (!numbers.ok()) return SetError(numbers.status(), response);
  auto& answer = *response.mutable_all_extension_numbers_response();
  answer.set_base_type_name(type);
  answer.mutable_extension_number()->Assign(numbers->begin(), numbers->end());
}

void SetServices(const ServedSchema& schema, ServerReflectionResponse& response) {
  auto& answer = *response.mutable_list_services_response();
  for (const std::string& name : schema.services()) answer.add_service()->set_name(name);
}

void Answer(const ServedSchema& schema, const ServerReflectionRequest& request,
            ServerReflectionResponse& response) {
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      return SetFiles(schema.FileNamed(request.file_by_filename()), response);
    case ServerReflectionRequest::kFileContainingSymbol:
      return SetFiles(schema.FileWithSymbol(request.file_containing_symbol()), response);
    case ServerReflectionRequest::kFileContainingExtension: {
      const auto& wanted = request.file_containing_extension();
      return SetFiles(schema.FileWithExtension(wanted.containing_type(), wanted.extension_number()),
                      response);
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      return SetExtensions(schema, request.all_extension_numbers_of_type(), response);
    case ServerReflectionRequest::kListServices:
      return SetServices(schema, response);
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      return SetError(MakeError(absl::StatusCode::kInvalidArgument, reason::kRequestMissing,
                                "message_request", "expected one of its fields, got none"),
                      response);
  }
}

// Serves both v1 and v1alpha, whose messages are equal on the wire.
class ReflectionCall final : public TypedStreamCall<ServerReflectionRequest> {
 public:
  ReflectionCall(const CallStart& start, std::shared_ptr<const ServedSchema> schema)
      : TypedStreamCall(start), schema_(std::move(schema)) {}

 private:
  void Start() override {
    SetIdleLimit(kReflectionIdleLimit);
    ReadNext();
  }
  void OnRequest() override {
    ServerReflectionResponse response;
    response.set_valid_host(request().host());
    Answer(*schema_, request(), response);
    *response.mutable_original_request() = std::move(request());
    Write(response);
  }
  void OnWritten() override { ReadNext(); }
  void OnRequestsEnd() override { Finish(absl::OkStatus()); }

  const std::shared_ptr<const ServedSchema> schema_;
};

}  // namespace

void AddReflectionService(Dispatcher& dispatcher) {
  namespace v1 = grpc::reflection::v1;
  namespace v1alpha = grpc::reflection::v1alpha;
  const auto& service =
      *v1::ServerReflectionRequest::descriptor()->file()->FindServiceByName("ServerReflection");
  const auto& alpha = *v1alpha::ServerReflectionRequest::descriptor()->file()->FindServiceByName(
      "ServerReflection");
  std::vector<std::string> names = dispatcher.services();
  names.push_back(service.full_name());
  names.push_back(alpha.full_name());
  const Method::Open open = [schema = std::make_shared<const ServedSchema>(names)](
                                const CallStart& start) -> std::shared_ptr<Call> {
    return std::make_shared<ReflectionCall>(start, schema);
  };
  dispatcher.Add(service, {{"ServerReflectionInfo", open}});
  dispatcher.Add(alpha, {{"ServerReflectionInfo", open}});
}

}  // namespace phimap
