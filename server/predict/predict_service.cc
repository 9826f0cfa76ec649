#include "server/predict/predict_service.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/head/head.h"
#include "core/head/head_answers.h"
#include "core/plan/examples.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "phimap/v1/predict_service.pb.h"
#include "proto/calls/prediction.h"
#include "server/registry/version_handle.h"
#include "server/transform/planned_answer.h"
#include "server/transform/row_messages.h"
#include "server/transform/row_stream_call.h"

namespace phimap {
namespace {

// Bytes of a number in packed form, at most: an index under 2^21, and a double.
constexpr int64_t kIndexBytes = 3;
constexpr int64_t kDoubleBytes = sizeof(double);
// Tag and length of a text.
constexpr int64_t kLengthBytes = 4;

// The part of the version that computes the answer.
LivePart PartFor(const v1::PredictRequest& request) {
  return request.deviations() ? LivePart::kBoth : LivePart::kAnswers;
}

// An answer of Predict or PredictStream. Its size is not known before the rows are computed, so it
// is charged for by an upper bound. Not thread-safe.
class PredictAnswer {
 public:
  // Checks that the head has what the request asks for, and plans the answer. `names_version` says
  // whether the answer names the version and its classes: all do, except the later answers of a
  // stream. Returns the bytes of a row in the answer, at most.
  absl::StatusOr<int64_t> Plan(const VersionHandle& version, const v1::PredictRequest& request,
                               int64_t rows, bool names_version);

  PlannedAnswer& message() { return message_; }
  // Returns the destination of what the engine computes.
  char* Allocate(const TransformMetrics& metrics) {
    metrics_ = &metrics;
    computed_.reset(new char[computed_bytes_]);
    return computed_.get();
  }
  absl::Status Complete(const ExamplesView& seen);

 private:
  int64_t RowBytes() const;

  VersionHandle version_;
  WantedAnswers wanted_;
  bool label_names_ = false;
  bool names_version_ = true;
  PlannedAnswer message_;
  const TransformMetrics* metrics_ = nullptr;
  size_t computed_bytes_ = 0;
  std::unique_ptr<char[]> computed_;
};

int64_t PredictAnswer::RowBytes() const {
  const Head& head = version_.head().head();
  const auto classes = static_cast<int64_t>(head.classes.size());
  int64_t bytes = head.task == HeadTask::kClasses ? kIndexBytes : kDoubleBytes;
  if (label_names_) {
    bytes += head.longest_class_name() + kLengthBytes;
  }
  if (wanted_.scores) bytes += head.scores() * kDoubleBytes;
  if (wanted_.probabilities) bytes += classes * kDoubleBytes;
  if (wanted_.confidence > 0) {
    bytes += head.task == HeadTask::kClasses ? 10 + classes * kIndexBytes : 2 * kDoubleBytes;
  }
  if (wanted_.deviations) bytes += kDoubleBytes;
  return bytes;
}

absl::StatusOr<int64_t> PredictAnswer::Plan(const VersionHandle& version,
                                            const v1::PredictRequest& request, int64_t rows,
                                            bool names_version) {
  version_ = version;
  wanted_ = WantedBy(request);
  label_names_ = request.label_names();
  names_version_ = names_version;
  PHIMAP_RETURN_IF_ERROR(version.head().Check(wanted_));
  const int64_t row_bytes = RowBytes();
  computed_bytes_ = static_cast<size_t>(rows * FeatureRowBytes(version));
  message_.AddScratch(computed_bytes_ + static_cast<size_t>(rows * row_bytes));
  if (names_version) {
    for (const std::string& name : version.head().head().classes) {
      message_.AddScratch(name.size() + kLengthBytes);
    }
  }
  return row_bytes;
}

absl::Status PredictAnswer::Complete(const ExamplesView& seen) {
  thread_local EngineScratch scratch;
  PHIMAP_ASSIGN_OR_RETURN(const Answers outputs,
                          version_.Answer(wanted_, seen, computed_.get(), scratch));
  computed_.reset();
  v1::PredictResponse response;
  if (names_version_) RefToProto(version_.record(), response.mutable_version());
  PredictionToProto(version_.head().head(), wanted_, outputs,
                    label_names_     ? ClassNames::kOfRows
                    : names_version_ ? ClassNames::kOnce
                                     : ClassNames::kNone,
                    &response);
  message_.Write(response, *metrics_);
  return absl::OkStatus();
}

// What a Predict asks of its version, whatever the outputs.
absl::Status CheckVersion(const VersionHandle& version, const v1::PredictRequest& request) {
  PHIMAP_RETURN_IF_ERROR(CheckDigest(version, request.expected_digest()));
  return CheckColumnNamesHash(version, request.column_names_hash(), "column_names_hash");
}

// Deviations need ρ(x), and that K(x, x), which may have to come with the rows.
absl::Status CheckRows(const VersionHandle& version, const v1::PredictRequest& request,
                       const ExamplesView& rows) {
  PHIMAP_RETURN_IF_ERROR(version.CheckTakes(rows));
  if (!request.deviations()) return absl::OkStatus();
  return ResidualOf(version, rows, "deviations").status();
}

// One Predict call: receives rows, sends answers.
class PredictCall final : public RowCall<v1::PredictRequest> {
 public:
  PredictCall(const CallStart& start, const RowCallEnvironment& environment)
      : RowCall(start, environment) {}

 private:
  absl::StatusOr<Wanted> Read() override {
    PHIMAP_ASSIGN_OR_RETURN(const ExamplesView rows, ExamplesFromProto(request().examples()));
    return Wanted{request().reference(), rows, RowsField(rows.kind()), deadline(),
                  PartFor(request())};
  }
  absl::StatusOr<int64_t> Accept(const VersionHandle& version, const ExamplesView& rows) override {
    PHIMAP_RETURN_IF_ERROR(CheckVersion(version, request()));
    PHIMAP_RETURN_IF_ERROR(CheckRows(version, request(), rows));
    return answer_.Plan(version, request(), rows.rows(), /*names_version=*/true);
  }
  PlannedAnswer& answer() override { return answer_.message(); }
  char* Allocate(const TransformMetrics& metrics) override { return answer_.Allocate(metrics); }
  absl::Status Complete(const ExamplesView& seen) override { return answer_.Complete(seen); }

  PredictAnswer answer_;
};

// One PredictStream call: receives requests and sends answers, in order. The first request names
// the version for the whole stream. An error ends the stream.
class PredictStreamCall final : public RowStreamCall<v1::PredictRequest, PredictAnswer> {
 public:
  PredictStreamCall(const CallStart& start, const RowCallEnvironment& environment,
                    const absl::Duration& idle_limit)
      : RowStreamCall(start, environment, idle_limit) {}

 private:
  absl::Status Read(Slot& slot) override {
    if (slot.number == 0) {
      part_ = PartFor(slot.request);
      return absl::OkStatus();
    }
    slot.version = version_;
    PHIMAP_RETURN_IF_ERROR(CheckNamesNoVersion(slot.request));
    if (PartFor(slot.request) == part_) return absl::OkStatus();
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldsContradictory, "deviations",
                     "expected what the first request of the stream has, as it decides what is "
                     "loaded; open another stream");
  }
  absl::string_view ReferenceOf(Slot& slot) override { return slot.request.reference(); }
  LivePart PartOf(const Slot&) const override { return part_; }
  absl::Status Accept(Slot& slot) override {
    if (slot.number == 0) {
      version_ = slot.version;
      PHIMAP_RETURN_IF_ERROR(CheckVersion(version_, slot.request));
    }
    PHIMAP_ASSIGN_OR_RETURN(slot.rows, ExamplesFromProto(slot.request.examples()));
    slot.field = RowsField(slot.rows.kind());
    PHIMAP_RETURN_IF_ERROR(CheckRows(version_, slot.request, slot.rows));
    PHIMAP_ASSIGN_OR_RETURN(const int64_t row_bytes,
                            slot.answer.Plan(version_, slot.request, slot.rows.rows(),
                                             /*names_version=*/slot.number == 0));
    return WithFieldPrefix(
        CheckAnswerFits(row_bytes, slot.rows.rows(), environment().max_message_bytes), slot.field);
  }
  absl::Status Failed(Slot& slot, const absl::Status& status) override {
    return WithRequestNumber(status, slot.number);
  }

  VersionHandle version_;
  LivePart part_ = LivePart::kAnswers;
};

}  // namespace

void AddPredictService(const RowCallEnvironment& environment, const absl::Duration& idle_limit,
                       Dispatcher& dispatcher) {
  const google::protobuf::FileDescriptor* const file = v1::PredictRequest::descriptor()->file();
  dispatcher.Add(*file->FindServiceByName("PredictService"),
                 {{"Predict", Opens<PredictCall>(environment)},
                  {"PredictStream", Opens<PredictStreamCall>(environment, idle_limit)}});
}

}  // namespace phimap
