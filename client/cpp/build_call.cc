// A build or a training, sent again until the server has it.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/calls.h"
#include "client/cpp/client.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/revision_memory.h"
#include "client/cpp/row_stream.h"
#include "core/digest/named_columns.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "google/protobuf/duration.pb.h"
#include "phimap/v1/learning_service.grpc.pb.h"
#include "phimap/v1/mapping_service.grpc.pb.h"

namespace phimap::client {

std::string RandomUuid() {
  std::random_device entropy;
  std::array<uint32_t, 4> words;
  for (uint32_t& word : words) word = entropy();
  words[1] = (words[1] & 0xffff0fff) | 0x00004000;  // version 4
  words[2] = (words[2] & 0x3fffffff) | 0x80000000;  // variant 1
  return absl::StrFormat("%08x-%04x-%04x-%04x-%04x%08x", words[0], words[1] >> 16,
                         words[1] & 0xffff, words[2] >> 16, words[2] & 0xffff, words[3]);
}

namespace {

bool IsWordByte(char c) { return absl::ascii_isalnum(c) || c == '_'; }

}  // namespace

absl::StatusOr<std::string> SpecText(
    absl::string_view family, const std::vector<std::pair<std::string, SpecValue>>& parameters) {
  std::string text = absl::StrCat(family, "(");
  for (const auto& [name, value] : parameters) {
    std::string written;
    if (const auto* const flag = std::get_if<bool>(&value)) written = *flag ? "true" : "false";
    if (const auto* const integer = std::get_if<int64_t>(&value)) written = absl::StrCat(*integer);
    if (const auto* const number = std::get_if<double>(&value); number && std::isfinite(*number)) {
      std::array<char, 32> digits;
      written.assign(digits.data(),
                     std::to_chars(digits.data(), digits.data() + digits.size(), *number).ptr);
    }
    if (const auto* const word = std::get_if<std::string>(&value);
        word && absl::c_all_of(*word, IsWordByte)) {
      written = *word;
    }
    if (written.empty()) {
      return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldInvalid, name,
                       "expected a finite number, or a word of letters, digits and _");
    }
    absl::StrAppend(&text, text.back() == '(' ? "" : ", ", name, "=", written);
  }
  return text + ")";
}

void ToProto(absl::Duration duration, google::protobuf::Duration& out) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  out.set_seconds(seconds);
  out.set_nanos(static_cast<int>(absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
}

void ToSpec(const BuildOptions& options, v1::BuildSpec& spec) {
  spec.set_name(options.name);
  spec.set_build_id(options.build_id);
  spec.set_spec(options.spec);
  spec.set_kernel(options.kernel);
  spec.set_standardize(options.standardize);
  spec.set_seed(options.seed);
  if (options.ttl != absl::InfiniteDuration()) ToProto(options.ttl, *spec.mutable_ttl());
}

namespace {

absl::StatusOr<v1::TrainingPart> PartOf(const std::string& name) {
  static constexpr std::pair<absl::string_view, v1::TrainingPart> kParts[] = {
      {"", v1::TRAINING_PART_UNSPECIFIED},
      {"train", v1::TRAINING_PART_TRAIN},
      {"validate", v1::TRAINING_PART_VALIDATE},
      {"calibrate-link", v1::TRAINING_PART_CALIBRATE_LINK},
      {"calibrate-sets", v1::TRAINING_PART_CALIBRATE_SETS},
      {"test", v1::TRAINING_PART_TEST}};
  for (const auto& [known, part] : kParts) {
    if (name == known) return part;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected train, validate, calibrate-link, calibrate-sets, test or nothing as "
                   "the part of a row, got '",
                   name, "'"));
}

void ToSpec(const TrainedFeatures& features, uint64_t seed,
            const std::vector<std::string>& column_names, v1::TrainingSpec& spec) {
  v1::BuildSpec& build = *spec.mutable_build();
  build.set_name(features.name);
  build.set_spec(features.spec);
  build.set_kernel(features.kernel);
  build.set_standardize(features.standardize);
  build.set_seed(seed);
  for (const std::string& name : column_names) build.add_column_names(name);
  spec.set_learn_scales(features.learn_scales);
  if (!features.tuning.has_value()) return;
  ToProto(features.tuning->budget, *spec.mutable_tuning()->mutable_budget());
  spec.mutable_tuning()->set_max_landmarks(features.tuning->max_landmarks);
}

}  // namespace

void ToSpec(const TrainOptions& options, const std::vector<std::string>& column_names,
            v1::TrainingSpec& spec) {
  spec.set_reference(options.reference);
  if (options.build.has_value()) {
    ToSpec(*options.build, options.seed, column_names, spec);
  } else {
    spec.set_column_names_hash(ColumnNamesHash(column_names));
  }
  spec.set_build_id(options.build_id);
  spec.set_learner(options.learner);
  if (options.task == HeadTask::kClasses) spec.set_task(v1::HEAD_TASK_CLASSES);
  if (options.task == HeadTask::kNumbers) spec.set_task(v1::HEAD_TASK_NUMBERS);
  spec.set_seed(options.seed);
  spec.set_expected_digest(options.expected_digest);
  if (options.ttl != absl::InfiniteDuration()) ToProto(options.ttl, *spec.mutable_ttl());
}

absl::Status AddFacts(RowFacts facts, v1::TrainingExamples& examples) {
  examples.mutable_weights()->Add(facts.weights.begin(), facts.weights.end());
  for (std::string& group : facts.groups) examples.add_groups(std::move(group));
  for (const std::string& part : facts.parts) {
    PHIMAP_ASSIGN_OR_RETURN(const v1::TrainingPart number, PartOf(part));
    examples.add_parts(number);
  }
  return absl::OkStatus();
}

namespace {

// Implements Client::Build and Train, whose messages and method `Kind` has:
//   using Request, Response;
//   std::unique_ptr<Stream> Open(grpc::ClientContext* context);
//   void ToSpec(Request& request) const;
//   absl::Status ToExamples(ExampleBlock block, Request& request);
//   RowSource& source();
//
// Each attempt sends the spec and waits for `accepted` before it reads
// rows. There are two cases:
//   attached      The server has the build with all its rows. Follow the build.
//   not attached  The server does not know the build. Send all rows. If an earlier attempt has read
//                 some of them, rewind the source first; give up if the source cannot rewind.
//
// Used once, by one thread.
template <typename Kind>
class BuildingCall {
 public:
  // REQUIRES: the spec has a build_id; all references outlive the call.
  BuildingCall(Kind& kind, RevisionMemory& revisions, const RetryPolicy& retry,
               absl::Duration timeout, const BuildObserver& observer, CancelToken& cancel)
      : kind_(kind),
        revisions_(revisions),
        retry_(retry),
        source_(kind.source()),
        observer_(observer),
        cancel_(cancel),
        deadline_(absl::Now() + timeout) {}

  absl::StatusOr<v1::Version> Run() {
    for (int attempt = 1;; ++attempt) {
      const Outcome outcome = RunAttempt();
      // A version that has arrived is stored permanently, even if the stream broke afterwards.
      if (version_.has_value()) return *std::move(version_);
      if (cancel_.cancelled()) return absl::CancelledError("the build was cancelled");
      const std::optional<absl::Duration> wait = WaitAfter(outcome, attempt);
      if (!wait.has_value()) return outcome.status;
      if (cancel_.WaitFor(*wait)) {
        return absl::CancelledError("the build was cancelled");
      }
    }
  }

 private:
  using Request = typename Kind::Request;
  using Response = typename Kind::Response;
  using Stream = RowStream<Request, Response>;

  // How one attempt ended.
  struct Outcome {
    absl::Status status;
    // True if another attempt cannot help: the input failed, or the server sent no version.
    bool final = false;
  };

  Outcome RunAttempt() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      attached_ = false;
    }
    grpc::ClientContext context;
    SetDeadline(context, deadline_);
    const auto take = [this](Response event) { Take(std::move(event)); };
    const typename Stream::Outcome outcome =
        Stream(source_, take)
            .Run(
                context, revisions_, revisions_.AskingForNone(), cancel_,
                [this](grpc::ClientContext* c) { return kind_.Open(c); },
                [this](Stream& stream) { return Send(stream); });
    if (!outcome.sent.ok()) return {outcome.sent, /*final=*/true};
    if (outcome.status.ok()) {
      return {absl::InternalError("the server ended the build without a version"), /*final=*/true};
    }
    return {outcome.status, /*final=*/false};
  }

  // Sends the spec, then the rows and `finish` unless the server does not need them.
  absl::Status Send(Stream& stream) {
    // A failed Write means only that the stream has ended; its outcome has the reason.
    Request spec;
    kind_.ToSpec(spec);
    if (!stream.Write(spec)) return absl::OkStatus();
    if (!stream.WaitUntilAccepted()) return absl::OkStatus();
    if (std::exchange(source_used_, true) && !WantsNoRows(stream)) {
      if (!source_.CanRewind()) {
        return absl::AbortedError(
            "the connection broke, the server no longer knows the build, and the input can be "
            "read only once: start the build again");
      }
      PHIMAP_RETURN_IF_ERROR(source_.Rewind());
    }
    PHIMAP_RETURN_IF_ERROR(SendRows(stream));
    stream.WritesDone();
    return absl::OkStatus();
  }

  absl::Status SendRows(Stream& stream) {
    int64_t rows_sent = 0;
    while (!WantsNoRows(stream)) {
      absl::StatusOr<ExampleBlock> block = source_.Next({});
      if (WantsNoRows(stream)) break;  // The source may have been interrupted.
      PHIMAP_RETURN_IF_ERROR(block.status());
      Request request;
      const int32_t rows = block->rows();
      if (rows == 0) {
        request.mutable_finish()->set_row_count(rows_sent);
      } else {
        PHIMAP_RETURN_IF_ERROR(kind_.ToExamples(*std::move(block), request));
      }
      if (!stream.Write(request)) return absl::OkStatus();
      rows_sent += rows;
      const std::lock_guard<std::mutex> lock(mutex_);
      progress_.rows_sent = rows_sent;
      progress_.sent = rows == 0;
      ever_sent_ |= progress_.sent;
      Report();
      if (rows == 0) break;
    }
    return absl::OkStatus();
  }

  void Take(Response event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (event.has_accepted()) {
      ever_accepted_ = true;
      attached_ = event.accepted().attached();
      if (attached_) {
        ever_sent_ = true;
        progress_.sent = true;
        source_.Interrupt();
      }
    } else if (event.has_progress()) {
      progress_.job = std::move(*event.mutable_progress());
      Report();
    } else if (event.has_version()) {
      version_ = std::move(*event.mutable_version());
    }
  }

  // Returns true if the server needs no more rows: the stream has ended, or this attempt is
  // attached to a build that has all rows.
  bool WantsNoRows(Stream& stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return attached_ || stream.ended();
  }

  // Returns the wait before the next attempt; nullopt if there must be no further attempt.
  std::optional<absl::Duration> WaitAfter(const Outcome& outcome, int attempt) {
    if (outcome.final || attempt >= retry_.max_attempts) return std::nullopt;
    const absl::Duration asked = RetryDelay(outcome.status).value_or(absl::ZeroDuration());
    const absl::Duration wait = std::max(retry_.BackoffBefore(attempt + 1), asked);
    if (absl::Now() + wait >= deadline_) return std::nullopt;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ever_sent_ && source_used_ && !source_.CanRewind()) return std::nullopt;
    // A server that reports that it did not begin the call is worth another attempt. Any other
    // server that never accepted may be the wrong one.
    if (WasNotBegun(outcome.status)) return wait;
    if (!ever_accepted_) return std::nullopt;
    // The server may notice a broken stream later than this client does, and holds the build id
    // until then.
    const bool still_held = attempt > 1 && absl::IsAborted(outcome.status);
    return IsBrokenConnection(outcome.status) || still_held ? std::optional(wait) : std::nullopt;
  }

  void Report() {
    if (observer_) observer_(progress_);
  }

  Kind& kind_;
  RevisionMemory& revisions_;
  const RetryPolicy retry_;
  RowSource& source_;
  const BuildObserver& observer_;
  CancelToken& cancel_;
  const absl::Time deadline_;

  std::mutex mutex_;
  // Whether the current attempt is attached; guarded by mutex_.
  bool attached_ = false;
  // State of the whole call; guarded by mutex_.
  bool ever_accepted_ = false;
  bool ever_sent_ = false;
  // True once an attempt was accepted: rows may have been read from the source, or the source may
  // have been interrupted. Used only by the caller's thread.
  bool source_used_ = false;
  // Guarded by mutex_.
  BuildProgress progress_;
  // Guarded by mutex_ until the reading thread has ended.
  std::optional<v1::Version> version_;
};

class BuildKind {
 public:
  using Request = v1::BuildRequest;
  using Response = v1::BuildResponse;

  BuildKind(v1::MappingService::StubInterface& stub, const BuildOptions& options, RowSource& source)
      : stub_(stub), options_(options), source_(source) {}

  RowSource& source() { return source_; }
  auto Open(grpc::ClientContext* context) { return stub_.Build(context); }
  void ToSpec(Request& request) const {
    client::ToSpec(options_, *request.mutable_spec());
    for (std::string& name : source_.column_names()) {
      request.mutable_spec()->add_column_names(std::move(name));
    }
  }
  absl::Status ToExamples(ExampleBlock block, Request& request) {
    client::ToExamples(std::move(block), *request.mutable_examples());
    return absl::OkStatus();
  }

 private:
  v1::MappingService::StubInterface& stub_;
  const BuildOptions& options_;
  RowSource& source_;
};

class TrainKind {
 public:
  using Request = v1::TrainRequest;
  using Response = v1::TrainResponse;

  TrainKind(v1::LearningService::StubInterface& stub, const TrainOptions& options,
            LabeledRowSource& source)
      : stub_(stub), options_(options), source_(source) {}

  RowSource& source() { return source_; }
  auto Open(grpc::ClientContext* context) { return stub_.Train(context); }
  void ToSpec(Request& request) const {
    client::ToSpec(options_, source_.column_names(), *request.mutable_spec());
  }
  absl::Status ToExamples(ExampleBlock block, Request& request) {
    v1::TrainingExamples& examples = *request.mutable_examples();
    PHIMAP_RETURN_IF_ERROR(ToLabeledExamples(std::move(block), source_, examples));
    return AddFacts(source_.TakeFacts(), examples);
  }

 private:
  v1::LearningService::StubInterface& stub_;
  const TrainOptions& options_;
  LabeledRowSource& source_;
};

}  // namespace

absl::StatusOr<v1::Version> CallBuild(v1::MappingService::StubInterface& stub,
                                      RevisionMemory& revisions, const RetryPolicy& retry,
                                      const BuildOptions& options, RowSource& source,
                                      const BuildObserver& observer, CancelToken& cancel) {
  BuildKind kind(stub, options, source);
  return BuildingCall<BuildKind>(kind, revisions, retry, options.timeout, observer, cancel).Run();
}

absl::StatusOr<v1::Version> CallTrain(v1::LearningService::StubInterface& stub,
                                      RevisionMemory& revisions, const RetryPolicy& retry,
                                      const TrainOptions& options, LabeledRowSource& source,
                                      const BuildObserver& observer, CancelToken& cancel) {
  TrainKind kind(stub, options, source);
  return BuildingCall<TrainKind>(kind, revisions, retry, options.timeout, observer, cancel).Run();
}

}  // namespace phimap::client
