#include "server/inference/inference_models.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/head/head.h"
#include "core/plan/residual.h"
#include "core/plan/rows.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/steady_time.h"
#include "server/inference/inference_request.h"
#include "server/observe/version_series.h"
#include "server/registry/reference.h"
#include "server/transform/row_messages.h"

namespace phimap {
namespace {

absl::StatusOr<VersionRecord> FindModel(Call& call, Store& store, absl::string_view name,
                                        absl::string_view version) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string text, ReferenceToModel(name, version, kModelAskedFor));
  PHIMAP_ASSIGN_OR_RETURN(const Reference reference, ParseReference(text));
  const absl::Status allowed = CheckReference(call, text);
  absl::StatusOr<VersionRecord> found = allowed.ok() ? LookUpVersion(store, reference) : allowed;
  if (!found.ok()) return InModelFields(found.status(), kModelAskedFor);
  return found;
}

// The kind of model, in the public protocol's field `platform`.
constexpr char kModelPlatform[] = "phimap_plan";

// Number of mappings or versions read at a time.
constexpr int kPage = 1000;

using Tensor = inference::ModelMetadataResponse::TensorMetadata;

void Describe(const char* name, const char* datatype, int64_t columns, Tensor* tensor) {
  tensor->set_name(name);
  tensor->set_datatype(datatype);
  tensor->add_shape(-1);
  tensor->add_shape(columns);
}

// Returns the numbers of all versions of a mapping in ascending order. The store returns them in
// descending order, a page at a time.
absl::StatusOr<std::vector<int64_t>> NumbersOf(Store& store, const std::string& mapping) {
  std::vector<int64_t> numbers;
  std::optional<int64_t> before;
  do {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<VersionRecord> page,
                            store.ListVersions(mapping, before, kPage));
    for (const VersionRecord& record : page) numbers.push_back(record.number);
    before = page.size() < kPage ? std::nullopt : std::optional<int64_t>(page.back().number);
  } while (before.has_value());
  std::reverse(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

namespace {

// An output of a version with a head.
struct HeadOutput {
  const char* name;
  const char* datatype;
  inference::DataType type;
  int64_t columns;
};

std::vector<HeadOutput> OutputsOfHead(const HeadFacts* head) {
  if (head == nullptr) return {};
  std::vector<HeadOutput> outputs;
  const auto classes = static_cast<int64_t>(head->classes.size());
  const char* const number = DatatypeOf(FloatType::kFloat64);
  if (classes > 0) outputs.push_back({kLabelName, "BYTES", inference::TYPE_STRING, 1});
  outputs.push_back({kScoreName, number, inference::TYPE_FP64, classes > 2 ? classes : 1});
  if (head->has_probabilities) {
    outputs.push_back({kProbabilityName, number, inference::TYPE_FP64, classes});
  }
  return outputs;
}

}  // namespace

absl::Status ReadModelMetadata(Call& call, Store& store,
                               const inference::ModelMetadataRequest& request,
                               inference::ModelMetadataResponse* response) {
  PHIMAP_ASSIGN_OR_RETURN(const VersionRecord found,
                          FindModel(call, store, request.name(), request.version()));
  response->set_name(found.mapping);
  response->set_platform(kModelPlatform);
  // Versions that map strings have no input here: only phimap's own API carries strings.
  if (found.input_columns > 0) {
    Describe(kInputName, DatatypeOf(FloatType::kFloat32), found.input_columns,
             response->add_inputs());
  }
  const bool single = found.serving_type == FloatTypeName(FloatType::kFloat32);
  Describe(kFeaturesName, DatatypeOf(single ? FloatType::kFloat32 : FloatType::kFloat64),
           found.output_columns, response->add_outputs());
  if (Residual::IsServedBy(found.spec_text)) {
    Describe(kResidualName, DatatypeOf(FloatType::kFloat64), 1, response->add_outputs());
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::shared_ptr<const HeadFacts> head, ReadHeadFacts(store, found));
  for (const HeadOutput& output : OutputsOfHead(head.get())) {
    Describe(output.name, output.datatype, output.columns, response->add_outputs());
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, NumbersOf(store, found.mapping));
  for (const int64_t number : numbers) response->add_versions(absl::StrCat(number));
  return absl::OkStatus();
}

namespace {

// Value of `backend` in the public configuration.
constexpr char kBackend[] = "phimap";

inference::DataType TypeOf(const VersionRecord& version) {
  const bool single = version.serving_type == FloatTypeName(FloatType::kFloat32);
  return single ? inference::TYPE_FP32 : inference::TYPE_FP64;
}

void AddOutput(const char* name, inference::DataType type, int64_t columns,
               inference::ModelConfig& config) {
  inference::ModelOutput& output = *config.add_output();
  output.set_name(name);
  output.set_data_type(type);
  output.add_dims(columns);
}

void AddTensors(const VersionRecord& version, const HeadFacts* head,
                inference::ModelConfig& config) {
  // Versions that map strings have no input here: only phimap's own API carries strings.
  if (version.input_columns > 0) {
    inference::ModelInput& input = *config.add_input();
    input.set_name(kInputName);
    input.set_data_type(inference::TYPE_FP32);
    input.add_dims(version.input_columns);
  }
  AddOutput(kFeaturesName, TypeOf(version), version.output_columns, config);
  if (Residual::IsServedBy(version.spec_text)) {
    AddOutput(kResidualName, inference::TYPE_FP64, 1, config);
  }
  for (const HeadOutput& output : OutputsOfHead(head)) {
    AddOutput(output.name, output.type, output.columns, config);
  }
}

}  // namespace

inference::ModelConfig ModelConfigOf(const VersionRecord& version, const HeadFacts* head) {
  inference::ModelConfig config;
  config.set_name(version.mapping);
  config.set_platform(kModelPlatform);
  config.set_backend(kBackend);
  config.mutable_version_policy()->mutable_all();
  config.set_max_batch_size(static_cast<int32_t>(kMaxRowsPerMessage));
  AddTensors(version, head, config);
  inference::ModelInstanceGroup& group = *config.add_instance_group();
  group.set_name(version.mapping);
  group.set_kind(inference::ModelInstanceGroup::KIND_CPU);
  group.set_count(1);
  config.mutable_dynamic_batching();
  config.mutable_model_transaction_policy();
  auto& parameters = *config.mutable_parameters();
  parameters["digest"].set_string_value(version.digest);
  parameters["spec"].set_string_value(version.spec_text);
  parameters["kernel"].set_string_value(version.kernel_text);
  parameters["serving_type"].set_string_value(version.serving_type);
  return config;
}

absl::Status ReadModelConfig(Call& call, Store& store, const inference::ModelConfigRequest& request,
                             inference::ModelConfigResponse* response) {
  PHIMAP_ASSIGN_OR_RETURN(const VersionRecord found,
                          FindModel(call, store, request.name(), request.version()));
  PHIMAP_ASSIGN_OR_RETURN(const std::shared_ptr<const HeadFacts> head, ReadHeadFacts(store, found));
  *response->mutable_config() = ModelConfigOf(found, head.get());
  return absl::OkStatus();
}

namespace {

uint64_t Natural(int64_t value) { return static_cast<uint64_t>(std::max<int64_t>(value, 0)); }

void Fill(const CountedTime& from, inference::StatisticDuration& to) {
  to.set_count(Natural(from.count));
  to.set_ns(Natural(absl::ToInt64Nanoseconds(from.total)));
}

CountedTime Counted(const TimeTally& tally) { return {tally.count(), tally.total()}; }

VersionCounts CountsOf(const VersionHandle& version) {
  const VersionTally& tally = version.tally();
  const absl::Time last = tally.last_request();
  return {.mapping = version.record().mapping,
          .number = version.record().number,
          .answered = Counted(tally.answered()),
          .failed = Counted(tally.failed()),
          .queued = Counted(tally.queued()),
          .computed = Counted(tally.computed()),
          .rows = tally.rows(),
          .batches = tally.batches(),
          // Converted to wall-clock time, because people read it.
          .last_request = last == absl::InfinitePast() ? last : absl::Now() - (SteadyNow() - last),
          .memory_bytes = version.memory_bytes()};
}

void AddTo(CountedTime& sum, const CountedTime& more) {
  sum.count += more.count;
  sum.total += more.total;
}

// Adds the counts of another part of the same version.
void AddTo(VersionCounts& sum, const VersionCounts& more) {
  AddTo(sum.answered, more.answered);
  AddTo(sum.failed, more.failed);
  AddTo(sum.queued, more.queued);
  AddTo(sum.computed, more.computed);
  sum.rows += more.rows;
  sum.batches += more.batches;
  sum.last_request = std::max(sum.last_request, more.last_request);
  sum.memory_bytes += more.memory_bytes;
}

// Which versions a request is about: all, those of a mapping, or one.
struct Meant {
  std::string mapping;
  int64_t number = 0;

  bool Has(const VersionRecord& record) const {
    return (mapping.empty() || record.mapping == mapping) &&
           (number == 0 || record.number == number);
  }
};

absl::StatusOr<Meant> FindMeant(Call& call, Store& store,
                                const inference::ModelStatisticsRequest& request) {
  if (request.name().empty() && request.version().empty()) return Meant{};
  // Looks up a version even if the request is about a whole mapping: a mapping without versions is
  // an error.
  PHIMAP_ASSIGN_OR_RETURN(const VersionRecord found,
                          FindModel(call, store, request.name(), request.version()));
  return Meant{found.mapping, request.version().empty() ? 0 : found.number};
}

}  // namespace

inference::ModelStatistics ModelStatisticsOf(const VersionCounts& counts) {
  inference::ModelStatistics statistics;
  statistics.set_name(counts.mapping);
  statistics.set_version(absl::StrCat(counts.number));
  if (counts.last_request != absl::InfinitePast()) {
    statistics.set_last_inference(Natural(absl::ToUnixMillis(counts.last_request)));
  }
  statistics.set_inference_count(Natural(counts.rows));
  statistics.set_execution_count(Natural(counts.batches));
  inference::InferStatistics& requests = *statistics.mutable_inference_stats();
  Fill(counts.answered, *requests.mutable_success());
  Fill(counts.failed, *requests.mutable_fail());
  Fill(counts.queued, *requests.mutable_queue());
  Fill(counts.computed, *requests.mutable_compute_infer());
  // These counts must be set: clients divide by them without checking whether they are present.
  requests.mutable_compute_input()->set_count(Natural(counts.computed.count));
  requests.mutable_compute_output()->set_count(Natural(counts.computed.count));
  inference::MemoryUsage& memory = *statistics.add_memory_usage();
  memory.set_type("CPU");
  memory.set_byte_size(Natural(counts.memory_bytes));
  return statistics;
}

absl::Status ReadModelStatistics(Call& call, Store& store, VersionRegistry& registry,
                                 const inference::ModelStatisticsRequest& request,
                                 inference::ModelStatisticsResponse* response) {
  PHIMAP_ASSIGN_OR_RETURN(const Meant meant, FindMeant(call, store, request));
  // The parts of a version come one after the other.
  std::vector<VersionCounts> all;
  for (const VersionHandle& version : registry.AllLive()) {
    if (!meant.Has(version.record()) || !call.Sees(version.record().mapping)) continue;
    VersionCounts counts = CountsOf(version);
    if (!all.empty() && all.back().mapping == counts.mapping &&
        all.back().number == counts.number) {
      AddTo(all.back(), counts);
    } else {
      all.push_back(std::move(counts));
    }
  }
  for (const VersionCounts& counts : all) {
    *response->add_model_stats() = ModelStatisticsOf(counts);
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<std::vector<IndexedVersion>> AllVersions(const Call& call, Store& store) {
  std::vector<IndexedVersion> versions;
  std::string after;
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<MappingRecord> page,
                            store.ListMappings(after, kPage));
    for (const MappingRecord& mapping : page) {
      if (!call.Sees(mapping.name)) continue;
      const absl::StatusOr<std::vector<int64_t>> numbers = NumbersOf(store, mapping.name);
      // The mapping was deleted after it was listed.
      if (absl::IsNotFound(numbers.status())) continue;
      PHIMAP_RETURN_IF_ERROR(numbers.status());
      for (const int64_t number : *numbers) versions.push_back({mapping.name, number});
    }
    if (page.size() < kPage) return versions;
    after = page.back().name;
  }
}

}  // namespace

absl::StatusOr<inference::RepositoryIndexResponse> RepositoryIndexOf(
    const inference::RepositoryIndexRequest& request, absl::Span<const IndexedVersion> versions) {
  if (!request.repository_name().empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kParameterNotSupported,
                     "repository_name",
                     absl::StrCat("the only repository has no name: expected an empty name, got ",
                                  Quoted(request.repository_name())),
                     {{"actual", Excerpt(request.repository_name())}});
  }
  inference::RepositoryIndexResponse response;
  for (const IndexedVersion& version : versions) {
    auto& model = *response.add_models();
    model.set_name(version.mapping);
    model.set_version(absl::StrCat(version.number));
    model.set_state("READY");
  }
  return response;
}

absl::Status ReadRepositoryIndex(Call& call, Store& store,
                                 const inference::RepositoryIndexRequest& request,
                                 inference::RepositoryIndexResponse* response) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<IndexedVersion> versions, AllVersions(call, store));
  PHIMAP_ASSIGN_OR_RETURN(*response, RepositoryIndexOf(request, versions));
  return absl::OkStatus();
}

}  // namespace phimap
