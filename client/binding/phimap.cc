#include "client/binding/phimap.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/local/local_job.h"
#include "client/local/onnx_model.h"
#include "core/engine/engine.h"
#include "core/feature_map/feature_map.h"
#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "proto/artifact/artifact_description.h"
#include "proto/calls/capabilities.h"
#include "proto/calls/prediction.h"
#include "proto/error/request_errors.h"

struct phimap_map {
  std::shared_ptr<const phimap::FeatureMap> map;
};

struct phimap_job {
  // Before the job, which uses it.
  std::optional<phimap::SpoolSpace> space;
  std::unique_ptr<phimap::LocalJob> job;
  int threads = 1;
};

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr int32_t kInterface = 3;
constexpr size_t kMaxTextBytes = 2048;
// Longest side of a block of rows: no count of its bytes overflows.
constexpr int64_t kMaxSide = int64_t{1} << 40;

void Give(absl::string_view from, phimap_bytes* to) {
  auto* const data = static_cast<char*>(std::malloc(std::max<size_t>(from.size(), 1)));
  if (data == nullptr) throw std::bad_alloc();
  std::memcpy(data, from.data(), from.size());
  *to = {data, static_cast<int64_t>(from.size())};
}

int32_t Answer(const absl::Status& status, phimap_bytes* error) {
  *error = {nullptr, 0};
  if (status.ok()) return 0;
  try {
    Give(EncodedDetails(status.code(), status.message(), DetailOf(status).value_or(ErrorDetail()),
                        kMaxTextBytes),
         error);
  } catch (const std::bad_alloc&) {  // the code says it alone
    return static_cast<int32_t>(Code::kResourceExhausted);
  }
  return static_cast<int32_t>(status.code());
}

// Calls `work`, and makes an error of an exception: none may cross the C interface.
template <typename Work>
int32_t Guarded(phimap_bytes* error, const Work& work) {
  try {
    try {
      return Answer(work(), error);
    } catch (const std::bad_alloc&) {
      return Answer(
          MakeError(Code::kResourceExhausted, reason::kMachineMemoryFull, "", "not enough memory"),
          error);
    } catch (const std::exception& unforeseen) {
      return Answer(absl::InternalError(unforeseen.what()), error);
    }
  } catch (...) {  // not even the memory for an error's words
    *error = {nullptr, 0};
    return static_cast<int32_t>(Code::kResourceExhausted);
  }
}

int ThreadsOf(int32_t asked) { return asked > 0 ? std::min(asked, 1024) : UsableProcessors(); }

// A block of the caller, as the core takes it.
class Examples {
 public:
  absl::Status Read(const phimap_rows& from) {
    if (from.rows < 1 || from.rows > kMaxSide) return Wrong("rows", from.rows, 1);
    switch (from.kind) {
      case static_cast<int>(ExampleKind::kDense):
        PHIMAP_RETURN_IF_ERROR(CheckNumbers(from));
        view_ =
            RowsView{static_cast<const char*>(from.values), TypeOf(from), from.rows, from.columns};
        return absl::OkStatus();
      case static_cast<int>(ExampleKind::kSparse):
        PHIMAP_RETURN_IF_ERROR(CheckNumbers(from));
        PHIMAP_RETURN_IF_ERROR(CheckOffsets(from));
        view_ = SparseRowsView{TypeOf(from),
                               from.rows,
                               from.columns,
                               reinterpret_cast<const char*>(from.offsets),
                               reinterpret_cast<const char*>(from.indices),
                               static_cast<const char*>(from.values)};
        return absl::OkStatus();
      case static_cast<int>(ExampleKind::kBytes):
      case static_cast<int>(ExampleKind::kText):
        return ReadStrings(from);
      default:
        return Wrong("kind", from.kind, 1);
    }
  }
  const ExamplesView& view() const { return view_; }

 private:
  static absl::Status Wrong(absl::string_view what, int64_t got, int64_t least) {
    return MakeError(
        Code::kInvalidArgument, reason::kFieldOutOfRange, absl::StrCat("examples.", what),
        absl::StrCat("expected at least ", least, ", got ", got), {{"actual", absl::StrCat(got)}});
  }
  static FloatType TypeOf(const phimap_rows& from) {
    return from.number_bytes == 4 ? FloatType::kFloat32 : FloatType::kFloat64;
  }
  static absl::Status CheckNumbers(const phimap_rows& from) {
    if (from.number_bytes != 4 && from.number_bytes != 8) {
      return Wrong("number_bytes", from.number_bytes, 4);
    }
    if (from.columns < 1 || from.columns > kMaxColumns) {
      return MakeError(
          Code::kInvalidArgument, reason::kFieldOutOfRange, "examples.columns",
          absl::StrCat("expected 1..", kMaxColumns, ", got ", from.columns),
          {{"limit", absl::StrCat(kMaxColumns)}, {"actual", absl::StrCat(from.columns)}});
    }
    return absl::OkStatus();
  }
  // Offsets between the first and the last are checked with the values, but only the caller knows
  // how many entries there are.
  static absl::Status CheckOffsets(const phimap_rows& from) {
    if (from.offsets[0] == 0 && from.offsets[from.rows] == from.entries && from.entries >= 0) {
      return absl::OkStatus();
    }
    return MakeError(Code::kInvalidArgument, reason::kOffsetsInvalid, "examples.offsets",
                     absl::StrCat("expected the first to be 0 and the last to be ", from.entries,
                                  ", got ", from.offsets[0], " and ", from.offsets[from.rows]));
  }

  absl::Status ReadStrings(const phimap_rows& from) {
    PHIMAP_RETURN_IF_ERROR(CheckOffsets(from));
    strings_.reserve(static_cast<size_t>(from.rows));
    for (int64_t i = 0; i < from.rows; ++i) {
      const int64_t begin = from.offsets[i];
      const int64_t end = from.offsets[i + 1];
      if (begin > end || end > from.entries) {
        return MakeError(Code::kInvalidArgument, reason::kOffsetsInvalid, "examples.offsets",
                         absl::StrCat("row ", i, ": offsets ", begin, " and ", end,
                                      " are not in order within ", from.entries, " bytes"));
      }
      strings_.emplace_back(static_cast<const char*>(from.values) + begin,
                            static_cast<size_t>(end - begin));
    }
    for (const std::string& text : strings_) pointers_.push_back(&text);
    view_ =
        StringsView{static_cast<ExampleKind>(from.kind), pointers_.data(), from.rows, from.entries};
    return absl::OkStatus();
  }

  std::vector<std::string> strings_;
  std::vector<const std::string*> pointers_;
  ExamplesView view_ = RowsView{};
};

template <typename Message>
absl::StatusOr<Message> Parsed(const char* bytes, int64_t size, absl::string_view field) {
  Message message;
  if (size < 0 || size > (int64_t{1} << 31) - 1 ||
      !message.ParseFromArray(bytes, static_cast<int>(size))) {
    return MakeError(Code::kInvalidArgument, reason::kFieldInvalid, field,
                     absl::StrCat(size, " bytes are no such message"));
  }
  return message;
}

class CallersMonitor final : public BuildMonitor {
 public:
  CallersMonitor(phimap_progress progress, void* context, int threads)
      : progress_(progress), context_(context), threads_(threads) {}

  absl::Status Checkpoint(absl::string_view phase, double fraction) override {
    if (progress_ == nullptr) return absl::OkStatus();
    phase_ = std::string(phase);
    if (progress_(context_, phase_.c_str(), fraction) == PHIMAP_GO_ON) return absl::OkStatus();
    return absl::CancelledError("the caller cancelled the work");
  }
  int threads() const override { return threads_; }

 private:
  const phimap_progress progress_;
  void* const context_;
  const int threads_;
  std::string phase_;
};

v1::Version Described(const FeatureMap& map) {
  v1::Version version;
  DescribeReviewed(map.facts(), map.digest(), static_cast<int64_t>(map.artifact().size()), version);
  return version;
}

absl::Status TakeJob(absl::StatusOr<std::unique_ptr<LocalJob>> made, phimap_job& into) {
  if (!made.ok()) return made.status();
  into.job = *std::move(made);
  return absl::OkStatus();
}

absl::Status JobIsOver() {
  return MakeError(Code::kFailedPrecondition, reason::kFieldInvalid, "job",
                   "it has ended: begin another");
}

}  // namespace
}  // namespace phimap

using phimap::Guarded;

void phimap_bytes_free(phimap_bytes* bytes) {
  std::free(bytes->data);
  *bytes = {nullptr, 0};
}

int32_t phimap_interface() { return phimap::kInterface; }

int32_t phimap_capabilities(phimap_bytes* capabilities, phimap_bytes* error) {
  *capabilities = {nullptr, 0};
  return Guarded(error, [&] {
    phimap::v1::ListCapabilitiesResponse response;
    phimap::CapabilitiesToProto(&response);
    phimap::Give(response.SerializeAsString(), capabilities);
    return absl::OkStatus();
  });
}

const char* phimap_processor() {
  static const std::string* const text =
      new std::string(absl::StrCat(phimap::EngineTargetName(), ", ", phimap::BlasCoreName()));
  return text->c_str();
}

int32_t phimap_map_load(const char* artifact, int64_t artifact_bytes, int64_t max_bytes,
                        int32_t kernel_values, phimap_map** map, phimap_bytes* error) {
  *map = nullptr;
  return Guarded(error, [&]() -> absl::Status {
    PHIMAP_RETURN_IF_ERROR(phimap::FeatureMap::CheckFits(artifact_bytes, max_bytes));
    PHIMAP_ASSIGN_OR_RETURN(
        auto loaded,
        phimap::FeatureMap::Load(std::string(artifact, static_cast<size_t>(artifact_bytes)),
                                 {.max_bytes = max_bytes, .kernel_values = kernel_values != 0}));
    *map = new phimap_map{std::move(loaded)};
    return absl::OkStatus();
  });
}

void phimap_map_free(phimap_map* map) { delete map; }

const char* phimap_map_artifact(const phimap_map* map, int64_t* bytes) {
  *bytes = static_cast<int64_t>(map->map->artifact().size());
  return map->map->artifact().data();
}

int32_t phimap_map_describe(const phimap_map* map, phimap_bytes* version, phimap_bytes* error) {
  *version = {nullptr, 0};
  return Guarded(error, [&] {
    phimap::Give(phimap::Described(*map->map).SerializeAsString(), version);
    return absl::OkStatus();
  });
}

int32_t phimap_map_verify(const phimap_map* map, int32_t* ran, phimap_bytes* error) {
  *ran = 0;
  return Guarded(error, [&]() -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const phimap::ReviewedArtifact review,
                            phimap::ReviewArtifact(map->map->artifact()));
    *ran = review.reference_vectors == phimap::ReferenceVectors::kVerified ? 1 : 0;
    return absl::OkStatus();
  });
}

int32_t phimap_map_transform_dense(const phimap_map* map, const void* values, int32_t number_bytes,
                                   int64_t rows, int64_t columns, void* features, int32_t threads,
                                   phimap_bytes* error) {
  const phimap_rows block = {static_cast<int32_t>(phimap::ExampleKind::kDense),
                             number_bytes,
                             rows,
                             columns,
                             values,
                             nullptr,
                             nullptr,
                             0};
  return phimap_map_transform(map, &block, features, nullptr, nullptr, threads, error);
}

int32_t phimap_map_transform(const phimap_map* map, const phimap_rows* rows, void* features,
                             double* residuals, double* allowances, int32_t threads,
                             phimap_bytes* error) {
  return Guarded(error, [&]() -> absl::Status {
    phimap::Examples examples;
    PHIMAP_RETURN_IF_ERROR(examples.Read(*rows));
    const int workers = rows->rows == 1 ? 1 : phimap::ThreadsOf(threads);
    PHIMAP_RETURN_IF_ERROR(map->map->Transform(examples.view(), features, workers));
    if (residuals == nullptr) return absl::OkStatus();
    return map->map->Residuals(examples.view(), features, residuals, allowances);
  });
}

int32_t phimap_map_predict(const phimap_map* map, const char* request, int64_t request_bytes,
                           const phimap_rows* rows, int32_t threads, phimap_bytes* answer,
                           phimap_bytes* error) {
  *answer = {nullptr, 0};
  return Guarded(error, [&]() -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const auto fields, phimap::Parsed<phimap::v1::PredictRequest>(
                                                   request, request_bytes, "request"));
    phimap::Examples examples;
    PHIMAP_RETURN_IF_ERROR(examples.Read(*rows));
    const phimap::WantedAnswers wanted = phimap::WantedBy(fields);
    const int workers = rows->rows == 1 ? 1 : phimap::ThreadsOf(threads);
    PHIMAP_ASSIGN_OR_RETURN(const phimap::Answers answers,
                            map->map->Predict(wanted, examples.view(), workers));
    PHIMAP_ASSIGN_OR_RETURN(const auto head, map->map->Head(wanted.deviations));
    phimap::v1::PredictResponse response;
    phimap::PredictionToProto(head->head(), wanted, answers, phimap::ClassNames::kOnce, &response);
    phimap::Give(response.SerializeAsString(), answer);
    return absl::OkStatus();
  });
}

int32_t phimap_map_onnx(const phimap_map* map, int32_t answers, phimap_bytes* model,
                        phimap_bytes* error) {
  *model = {nullptr, 0};
  return Guarded(error, [&]() -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(
        const std::string bytes,
        phimap::OnnxModelOf(*map->map, answers != 0 ? phimap::OnnxOutputs::kAnswers
                                                    : phimap::OnnxOutputs::kFeatures));
    phimap::Give(bytes, model);
    return absl::OkStatus();
  });
}

int32_t phimap_job_build(const char* spec, int64_t spec_bytes, int32_t threads, phimap_job** job,
                         phimap_bytes* error) {
  *job = nullptr;
  return Guarded(error, [&]() -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const auto fields,
                            phimap::Parsed<phimap::v1::BuildSpec>(spec, spec_bytes, "spec"));
    auto made = std::make_unique<phimap_job>();
    made->threads = phimap::ThreadsOf(threads);
    PHIMAP_RETURN_IF_ERROR(phimap::TakeJob(phimap::BuildLocally(fields), *made));
    *job = made.release();
    return absl::OkStatus();
  });
}

int32_t phimap_job_train(const phimap_map* map, const char* spec, int64_t spec_bytes,
                         const char* spool_folder, int64_t spool_bytes, int32_t threads,
                         phimap_job** job, phimap_bytes* error) {
  *job = nullptr;
  return Guarded(error, [&]() -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const auto fields,
                            phimap::Parsed<phimap::v1::TrainingSpec>(spec, spec_bytes, "spec"));
    auto made = std::make_unique<phimap_job>();
    made->threads = phimap::ThreadsOf(threads);
    made->space.emplace(spool_folder, spool_bytes);
    PHIMAP_RETURN_IF_ERROR(
        phimap::TakeJob(phimap::TrainLocally(map == nullptr ? nullptr : map->map, fields,
                                             *made->space, made->threads),
                        *made));
    *job = made.release();
    return absl::OkStatus();
  });
}

int32_t phimap_job_evaluate(const phimap_map* map, const char* spec, int64_t spec_bytes,
                            phimap_job** job, phimap_bytes* error) {
  *job = nullptr;
  return Guarded(error, [&]() -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const auto fields,
                            phimap::Parsed<phimap::v1::EvaluationSpec>(spec, spec_bytes, "spec"));
    auto made = std::make_unique<phimap_job>();
    PHIMAP_RETURN_IF_ERROR(phimap::TakeJob(phimap::EvaluateLocally(map->map, fields), *made));
    *job = made.release();
    return absl::OkStatus();
  });
}

int32_t phimap_job_add(phimap_job* job, const phimap_rows* rows, const char* known,
                       int64_t known_bytes, phimap_progress progress, void* context,
                       phimap_bytes* error) {
  return Guarded(error, [&]() -> absl::Status {
    if (job->job == nullptr) return phimap::JobIsOver();
    PHIMAP_ASSIGN_OR_RETURN(const auto labeled, phimap::Parsed<phimap::v1::TrainingExamples>(
                                                    known, known_bytes, "examples"));
    phimap::Examples examples;
    PHIMAP_RETURN_IF_ERROR(examples.Read(*rows));
    phimap::CallersMonitor monitor(progress, context, job->threads);
    // Unusable after an error, or an exception.
    std::unique_ptr<phimap::LocalJob> work = std::move(job->job);
    PHIMAP_RETURN_IF_ERROR(work->Add(examples.view(), labeled, monitor));
    job->job = std::move(work);
    return absl::OkStatus();
  });
}

int32_t phimap_job_finish(phimap_job* job, phimap_progress progress, void* context,
                          phimap_bytes* result, phimap_bytes* error) {
  *result = {nullptr, 0};
  return Guarded(error, [&]() -> absl::Status {
    if (job->job == nullptr) return phimap::JobIsOver();
    phimap::CallersMonitor monitor(progress, context, job->threads);
    const std::unique_ptr<phimap::LocalJob> work = std::move(job->job);
    PHIMAP_ASSIGN_OR_RETURN(const std::string bytes, work->Finish(monitor));
    phimap::Give(bytes, result);
    return absl::OkStatus();
  });
}

void phimap_job_free(phimap_job* job) { delete job; }
