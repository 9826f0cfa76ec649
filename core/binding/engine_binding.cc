#include "core/binding/engine_binding.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/engine/engine.h"
#include "core/plan/artifact.h"
#include "core/plan/examples.h"
#include "core/plan/rows.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

struct phimap_engine {
  std::unique_ptr<const phimap::Engine> engine;
};

namespace phimap {
namespace {

constexpr int32_t kInterface = 1;

int32_t Answer(const absl::Status& status, char* error, int64_t error_bytes) {
  if (!status.ok() && error_bytes > 0) {
    const absl::string_view text = status.message();
    const size_t length = std::min(text.size(), static_cast<size_t>(error_bytes) - 1);
    std::memcpy(error, text.data(), length);
    error[length] = 0;
  }
  return static_cast<int32_t>(status.code());
}

// Calls `work` and turns bad_alloc into an error, because no exception may cross the C interface.
template <typename Work>
int32_t Guarded(char* error, int64_t error_bytes, const Work& work) {
  try {
    return Answer(work(), error, error_bytes);
  } catch (const std::bad_alloc&) {
    return Answer(absl::ResourceExhaustedError("out of memory"), error, error_bytes);
  }
}

absl::StatusOr<std::unique_ptr<const Engine>> LoadLocal(absl::string_view bytes) {
  PHIMAP_ASSIGN_OR_RETURN(const Artifact artifact, DecodeArtifact(bytes));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<const Engine> engine, Engine::Load(artifact.plan));
  if (engine->is_remote()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kKernelRemote, "",
                     absl::StrCat("kernel ", artifact.provenance.kernel_text,
                                  " is remote: phimap does not compute its values, so the artifact "
                                  "alone maps nothing; use the server to transform"));
  }
  if (engine->takes_strings()) {
    return MakeError(
        absl::StatusCode::kUnimplemented, reason::kExamplesNotNumeric, "",
        absl::StrCat(
            "kernel ", artifact.provenance.kernel_text,
            " maps strings, but this library takes rows of numbers; use the server to transform"));
  }
  return engine;
}

absl::Status CheckCounts(int32_t number_bytes, int64_t rows, int64_t columns) {
  if ((number_bytes == 4 || number_bytes == 8) && rows >= 0 && columns >= 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected numbers of 4 or 8 bytes, at least 0 rows and 1 column, got ",
                   number_bytes, ", ", rows, " and ", columns));
}

FloatType TypeOf(int32_t number_bytes) {
  return number_bytes == 4 ? FloatType::kFloat32 : FloatType::kFloat64;
}

absl::Status Map(const Engine& engine, const ExamplesView& examples, void* features) {
  PHIMAP_RETURN_IF_ERROR(engine.CheckTakes(examples));
  PHIMAP_RETURN_IF_ERROR(CheckExamples(examples));
  thread_local EngineScratch scratch;
  TransformPart part{.rows = examples, .features = features};
  engine.Transform(absl::MakeSpan(&part, 1), scratch);
  return part.status;
}

}  // namespace
}  // namespace phimap

int32_t phimap_engine_interface() { return phimap::kInterface; }

int32_t phimap_engine_load(const char* artifact, int64_t artifact_bytes, phimap_engine** engine,
                           char* error, int64_t error_bytes) {
  return phimap::Guarded(error, error_bytes, [&]() -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(auto loaded,
                            phimap::LoadLocal({artifact, static_cast<size_t>(artifact_bytes)}));
    *engine = new phimap_engine{std::move(loaded)};
    return absl::OkStatus();
  });
}

void phimap_engine_free(phimap_engine* engine) { delete engine; }

int64_t phimap_engine_input_columns(const phimap_engine* engine) {
  return engine->engine->input_columns();
}

int64_t phimap_engine_output_columns(const phimap_engine* engine) {
  return engine->engine->output_columns();
}

int32_t phimap_engine_feature_bytes(const phimap_engine* engine) {
  return static_cast<int32_t>(phimap::FloatTypeBytes(engine->engine->serving_type()));
}

int32_t phimap_engine_transform_dense(const phimap_engine* engine, const void* values,
                                      int32_t number_bytes, int64_t rows, int64_t columns,
                                      void* features, char* error, int64_t error_bytes) {
  return phimap::Guarded(error, error_bytes, [&]() -> absl::Status {
    PHIMAP_RETURN_IF_ERROR(phimap::CheckCounts(number_bytes, rows, columns));
    const phimap::RowsView view{static_cast<const char*>(values), phimap::TypeOf(number_bytes),
                                rows, columns};
    return phimap::Map(*engine->engine, view, features);
  });
}

int32_t phimap_engine_transform_sparse(const phimap_engine* engine, const int64_t* offsets,
                                       const int32_t* indices, const void* values, int64_t entries,
                                       int32_t number_bytes, int64_t rows, int64_t columns,
                                       void* features, char* error, int64_t error_bytes) {
  return phimap::Guarded(error, error_bytes, [&]() -> absl::Status {
    PHIMAP_RETURN_IF_ERROR(phimap::CheckCounts(number_bytes, rows, columns));
    // CheckExamples compares offsets with the last offset, but only the caller's `entries` says
    // whether the last offset is right.
    if (offsets[0] != 0 || offsets[rows] != entries) {
      return absl::InvalidArgumentError(absl::StrCat("offsets: expected 0 to ", entries, ", got ",
                                                     offsets[0], " to ", offsets[rows]));
    }
    const phimap::SparseRowsView view{phimap::TypeOf(number_bytes),
                                      rows,
                                      columns,
                                      reinterpret_cast<const char*>(offsets),
                                      reinterpret_cast<const char*>(indices),
                                      static_cast<const char*>(values)};
    return phimap::Map(*engine->engine, view, features);
  });
}
