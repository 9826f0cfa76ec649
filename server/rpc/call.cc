#include "server/rpc/call.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/steady_time.h"
#include "google/protobuf/message_lite.h"
#include "server/admission/request_memory.h"
#include "server/rpc/framed_message.h"
#include "server/rpc/message_source.h"
#include "server/rpc/request_reference.h"
#include "server/rpc/status_trailers.h"
#include "server/store/audit.h"
#include "server/trace/tracer.h"

namespace phimap {

namespace {

using Code = absl::StatusCode;

// Maximum factor by which texts and numbers grow when they are parsed. A message that grows by more
// is rejected if it would not fit into an otherwise empty budget.
constexpr int64_t kUsualGrowth = 4;

absl::Status GrowsTooLarge(size_t bytes, int64_t parsed, int64_t limit) {
  return MakeError(Code::kResourceExhausted, reason::kMessageTooLarge, "",
                   absl::StrCat("the message has ", bytes, " bytes and would take ", parsed,
                                " bytes when parsed, more than --memory_bytes=", limit,
                                "; send fewer elements at once, and send numbers as bytes"),
                   {{"actual", absl::StrCat(parsed)}, {"limit", absl::StrCat(limit)}});
}

// Increases `charge` if it does not cover the message's bytes and the parsed message, whose size is
// `parsed`.
absl::Status ChargeParsed(RequestMemory& memory, const CallerPointer& caller,
                          absl::string_view bytes, const absl::StatusOr<int64_t>& parsed,
                          RequestMemory::Charge& charge) {
  if (!parsed.ok()) return parsed.status();
  const int64_t needed = static_cast<int64_t>(bytes.size()) + *parsed;
  if (needed <= charge.bytes()) return absl::OkStatus();
  if (needed > memory.max_bytes() && *parsed > kUsualGrowth * static_cast<int64_t>(bytes.size())) {
    return GrowsTooLarge(bytes.size(), *parsed, memory.max_bytes());
  }
  std::optional<RequestMemory::Charge> more =
      memory.Take(caller, needed - charge.bytes(), /*held=*/charge.bytes());
  if (!more.has_value()) return memory.Full(caller, "the parsed request", needed);
  charge.Add(*std::move(more));
  return absl::OkStatus();
}

// Maximum size of a message that is parsed on the loop, of its memory once parsed, and number of
// its fields. Parsing a larger one there would delay other calls: 255 KiB of empty fields become 10
// MiB in 10 ms, and as many of one field that is not repeated take as long.
constexpr size_t kParsedHere = 256 << 10;
constexpr int64_t kParsedHereMemory = 1 << 20;
constexpr int64_t kParsedHereFields = 2048;

// Answers up to this size are sent even without capacity, because the result of a call must be
// reported. A call has at most one such answer at a time.
constexpr size_t kAlwaysAnswered = 64 << 10;

// Number of periods of half_message_time in which a message has to arrive while others wait for
// memory. A message of a caller that holds more than its share has one period.
constexpr int kHalfMessagePeriods = 6;

// Log level by outcome. Successful calls interest only those who debug a client, and a sample of
// them (Logger::SamplesCall) the server's operator. The client's errors interest the operator too.
// The server's errors interest everybody.
LogLevel LevelOf(Code code) {
  if (code == Code::kOk) return LogLevel::kDebug;
  const bool ours = code == Code::kInternal || code == Code::kUnknown || code == Code::kDataLoss;
  return ours ? LogLevel::kError : LogLevel::kInfo;
}

// Returns the status to count and to log. gRPC prescribes INTERNAL for a fault of the client, which
// must not raise the alarm about faults of the server.
absl::Status AsFaultOfItsSide(const absl::Status& status) {
  if (status.code() != Code::kInternal) return status;
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value() || detail->reason != reason::kEncodingMissing) return status;
  return MakeError(Code::kInvalidArgument, detail->reason, "", status.message());
}

// Begins the span of a call that was admitted at `started`.
Span BeginSpan(const CallStart& start, const RequestId& id, absl::Time started) {
  if (start.environment.tracer == nullptr) return Span();
  // The loop has known since then that there are bytes to read.
  const absl::Time readable = start.stream.loop().now();
  Span span = start.environment.tracer->Start(
      start.method.metrics.full_name, SpanKind::kServer,
      id.trace_parent().has_value() ? &*id.trace_parent() : nullptr, readable);
  if (span.recorded()) {
    span.Child("admission", SpanKind::kInternal, readable).End(absl::OkStatus(), started);
  }
  return span;
}

// Maximum time for the request of a unary call to arrive. While it arrives, it occupies memory that
// others need.
constexpr absl::Duration kRequestTime = absl::Minutes(1);

absl::Status DeadlinePassed() {
  return absl::DeadlineExceededError("the deadline passed before the answer was ready");
}

// First of the list of this thread's calls whose streams have begun and not ended.
thread_local Call* first_live = nullptr;

absl::Status RevisionNotFound(absl::string_view wanted) {
  return MakeError(
      Code::kUnavailable, reason::kRevisionNotReached, std::string(kMinRevisionKey),
      absl::StrCat("the database did not answer within ", absl::FormatDuration(kRevisionTime),
                   ", so this server cannot tell whether it knows revision ", wanted),
      {}, /*retry_delay_ms=*/1000);
}

absl::Status RequestTooSlow() {
  return MakeError(Code::kDeadlineExceeded, reason::kRequestTooSlow, "",
                   "the request did not arrive completely in time");
}

// `what`: "a message arrived", or the like.
absl::Status TooSlow(absl::string_view reason, absl::string_view what, absl::Duration time,
                     double slowest) {
  return MakeError(
      Code::kDeadlineExceeded, reason, "",
      absl::StrCat("for ", absl::FormatDuration(time), ", ", what, " at less than ",
                   static_cast<int64_t>(slowest),
                   " bytes per second, while other requests wait for the memory reserved for it"));
}

}  // namespace

absl::Status MalformedRequest(absl::string_view type) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kRequestMalformed, "",
                   absl::StrCat("expected a message ", type,
                                ", got bytes that do not parse as one; text fields must be UTF-8"),
                   {{"expected", std::string(type)}});
}

absl::Status WrongMessageCount(absl::string_view type, absl::string_view actual) {
  return MakeError(absl::StatusCode::kUnimplemented, reason::kMessageCountWrong, "",
                   absl::StrCat("expected one message ", type, ", got ", actual),
                   {{"expected", "1"}, {"actual", std::string(actual)}});
}

absl::Status Unexpected(const char* field, const char* expected) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kMessageUnexpected, field,
                   absl::StrCat("expected ", expected));
}

absl::Status ClientGone() { return absl::CancelledError("the client cancelled the stream"); }

Call::Call(const CallStart& start, const MessageCost& request_cost,
           MessageSource::WithoutCapacity without_capacity)
    : loop_(start.stream.loop().shared_from_this()),
      stream_(&start.stream),
      method_(start.method),
      environment_(start.environment),
      request_cost_(request_cost),
      parser_(start.parser),
      share_(std::move(start.share)),
      caller_(share_.use()),
      principal_(std::move(start.principal)),
      started_(SteadyNow()),
      deadline_(start.deadline),
      peer_(start.stream.peer().address),
      source_(environment_.memory, caller_,
              std::min(environment_.max_message_bytes, method_.max_request_bytes), without_capacity,
              [this] { return GrantedToThis(); }),
      deadline_timer_(*this),
      half_message_timer_(*this),
      unread_timer_(*this),
      min_revision_(start.min_revision),
      revisions_(start.revisions),
      revision_timer_(*this),
      request_id_(std::move(start.ids)),
      span_(BeginSpan(start, request_id_, started_)),
      span_context_(span_.context()) {}

Call::~Call() { PHIMAP_CHECK(over_ || !begun_); }

template <typename Act>
void Call::ForEachLive(const Act& act) {
  // Collected first, because `act` may end other calls than its own.
  std::vector<std::weak_ptr<Call>> live;
  for (Call* call = first_live; call != nullptr; call = call->live_after_) {
    live.push_back(call->weak_from_this());
  }
  for (const std::weak_ptr<Call>& each : live) {
    const std::shared_ptr<Call> call = each.lock();
    if (call != nullptr && call->stream_ != nullptr) act(*call);
  }
}

void Call::CancelSilentCalls(absl::Duration silent) {
  const absl::Time now = SteadyNow();
  ForEachLive([&](Call& call) {
    const absl::Time since = call.over_ ? call.stream_->unread_since() : call.waits_since();
    if (since + silent <= now) call.CancelForShutdown();
  });
}

void Call::CancelAllCalls() {
  ForEachLive([](Call& call) { call.CancelForShutdown(); });
}

void Call::JoinLive() {
  live_after_ = first_live;
  if (live_after_ != nullptr) live_after_->live_before_ = this;
  first_live = this;
}

void Call::LeaveLive() {
  if (live_after_ != nullptr) live_after_->live_before_ = live_before_;
  if (live_before_ != nullptr) {
    live_before_->live_after_ = live_after_;
  } else if (first_live == this) {
    first_live = live_after_;
  }
  live_before_ = live_after_ = nullptr;
}

void Call::CancelForShutdown() {
  const std::shared_ptr<Call> self = shared_from_this();
  if (!over_) return Cancel(ShuttingDown());
  // The call has ended, so its trailers are already being sent. The stream is reset only if the
  // client does not read the answer before them.
  if (stream_->unread_since() != absl::InfiniteFuture()) stream_->Reset(ResetCode::kCancel);
}

void Call::DeadlineTimer::OnTime() {
  call.Cancel(call.deadline_ <= call.request_until_ ? DeadlinePassed() : RequestTooSlow());
}

void Call::AwaitRequestUntil(absl::Time at) {
  request_until_ = at;
  loop_->timers().Set(deadline_timer_, std::min(deadline_, at));
}

void Call::Begin() {
  JoinLive();
  begun_ = true;
  method_.metrics.started->Increment();
  // The timer would come after an answer that this loop computes at once.
  if (deadline_ <= SteadyNow()) return Cancel(DeadlinePassed());
  loop_->timers().Set(deadline_timer_, deadline_);
  min_revision_.empty() ? OnBegin() : AwaitRevision();
}

void Call::AwaitRevision() {
  loop_->timers().Set(revision_timer_, loop_->now() + kRevisionTime);
  revisions_->Find(min_revision_, [call = weak_from_this()](const absl::Status& found) {
    const std::shared_ptr<Call> self = call.lock();
    if (self != nullptr) self->Post([raw = self.get(), found] { raw->OnRevision(found); });
  });
}

void Call::OnRevision(const absl::Status& found) {
  revision_timer_.Cancel();
  if (!found.ok()) return Finish(found);
  min_revision_.clear();
  OnBegin();
  // Handles input that arrived in the meantime.
  if (!over_) Progress();
}

void Call::OnRevisionTime() { Finish(RevisionNotFound(min_revision_)); }

void Call::OnData(absl::string_view bytes) {
  if (over_) return stream_->Consume(bytes.size());
  last_data_ = loop_->now();
  source_.Take(*stream_, bytes);
  Progress();
}

void Call::OnRequestEnd() {
  source_.End();
  if (!over_) Progress();
}

void Call::Pull() {
  if (over_ || stream_ == nullptr) return;
  source_.Take(*stream_, {});
  WatchHalfMessage();
}

void Call::Progress() {
  if (!min_revision_.empty()) return;
  WatchHalfMessage();
  if (source_.has_message() || source_.at_end() || !source_.error().ok()) OnRequestProgress();
}

void Call::WatchHalfMessage() {
  if (!source_.holds_half() || half_message_timer_.is_set()) return;
  half_message_bytes_ = source_.taken_bytes();
  half_message_number_ = source_.messages();
  half_message_since_ = loop_->now();
  loop_->timers().Set(half_message_timer_, loop_->now() + PacePeriod());
}

absl::Duration Call::PacePeriod() const {
  const bool urgent = environment_.memory.HoldsOverHalf(caller_);
  return (urgent ? 0.2 : 1.0) * environment_.half_message_time;
}

double Call::SlowestBytesPerSecond(double bytes) const {
  const int periods = environment_.memory.HoldsTooMuch(caller_) ? 1 : kHalfMessagePeriods;
  return std::max(static_cast<double>(environment_.slowest_bytes_per_second),
                  bytes / absl::ToDoubleSeconds(periods * environment_.half_message_time));
}

void Call::OnHalfMessageTime() {
  const absl::Duration time = loop_->now() - half_message_since_;
  const auto came = static_cast<double>(source_.taken_bytes() - half_message_bytes_);
  if (source_.holds_half() && source_.messages() == half_message_number_) {
    // Half of the charge is for the message itself.
    const double slowest = SlowestBytesPerSecond(static_cast<double>(source_.half_bytes()) / 2);
    // Looks back over two periods, so that this check also sees a request that was refused just
    // after the previous check.
    if (came < slowest * absl::ToDoubleSeconds(time) &&
        environment_.memory.IsWantedSince(loop_->now() - 2 * environment_.half_message_time)) {
      return Cancel(TooSlow(reason::kRequestTooSlow, "a message arrived", time, slowest));
    }
  }
  WatchHalfMessage();
}

RequestMemory::Granted Call::GrantedToThis() {
  return [call = weak_from_this()](RequestMemory::Charge charge) {
    const std::shared_ptr<Call> self = call.lock();
    if (self == nullptr) return;
    // A std::function must be copyable.
    const auto granted = std::make_shared<RequestMemory::Charge>(std::move(charge));
    self->Post([raw = self.get(), granted] {
      raw->source_.TakeGranted(*raw->stream_, std::move(*granted));
      raw->Progress();
    });
  };
}

void Call::OnSent() {
  unread_timer_.Cancel();
  send_span_.End();
  if (!over_) OnAnswersSent();
}

void Call::OnClosed(ResetCode) {
  stream_ = nullptr;
  unread_timer_.Cancel();
  LeaveLive();
  if (over_ || !begun_) return;
  try {
    Cancel(absl::CancelledError("the client cancelled the call"));
  } catch (const std::bad_alloc&) {
    CancelWithoutMemory();
  }
}

void Call::CancelWithoutMemory() {
  if (!OnLoop()) return Post([this] { CancelWithoutMemory(); });
  Cancel(absl::ResourceExhaustedError(""));  // without a message it needs no memory
}

void Call::Cancel(const absl::Status& status) {
  cancelled_.store(true, std::memory_order_relaxed);
  Finish(status);
}

void Call::Post(std::function<void()> task) {
  loop_->Post([self = shared_from_this(), task = std::move(task)] {
    if (self->over_) return;
    try {
      task();
    } catch (const std::bad_alloc&) {
      self->CancelWithoutMemory();
    }
  });
}

absl::Status Call::ParseCharged(const absl::StatusOr<int64_t>& cost, ChargedMessage& message,
                                google::protobuf::MessageLite& parsed) const {
  const absl::string_view bytes = message.bytes.view();
  absl::Status charged = ChargeParsed(environment_.memory, caller_, bytes, cost, message.charge);
  if (!charged.ok()) return charged;
  try {
    if (parser_ != nullptr) {
      PHIMAP_RETURN_IF_ERROR(parser_->Parse(bytes, parsed));
    } else if (!parsed.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return MalformedRequest(parsed.GetTypeName());
    }
  } catch (const std::bad_alloc&) {
    return MakeError(Code::kResourceExhausted, reason::kMachineMemoryFull, "",
                     "not enough memory for this request", {}, /*retry_delay_ms=*/1000);
  }
  const int64_t wire = static_cast<int64_t>(bytes.size());
  message.bytes = MessageBytes();
  message.charge.ShrinkTo(message.charge.bytes() - wire);
  return absl::OkStatus();
}

std::optional<absl::StatusOr<int64_t>> Call::CostHere(absl::string_view bytes) const {
  if (bytes.size() > kParsedHere) return std::nullopt;
  std::optional<absl::StatusOr<int64_t>> cost;
  if (parser_ == nullptr) {
    cost = request_cost_.OfFew(bytes, kParsedHereFields);
  } else {
    cost = parser_->Cost(bytes);
  }
  if (cost.has_value() && cost->ok() && **cost > kParsedHereMemory) return std::nullopt;
  return cost;
}

void Call::Parse(ChargedMessage message, google::protobuf::MessageLite& parsed, Parsed done) {
  method_.metrics.messages_received->Increment();
  if (const auto cost = CostHere(message.bytes.view()); cost.has_value()) {
    const absl::Status status = ParseCharged(*cost, message, parsed);
    return done(status, std::move(message.charge));
  }
  const auto shared = std::make_shared<ChargedMessage>(std::move(message));
  const absl::Status queued = environment_.parsing.Submit(
      [this, self = shared_from_this(), shared, &parsed, done = std::move(done)] {
        const absl::string_view bytes = shared->bytes.view();
        const absl::StatusOr<int64_t> cost =
            parser_ == nullptr ? request_cost_.Of(bytes) : parser_->Cost(bytes);
        const absl::Status status = ParseCharged(cost, *shared, parsed);
        Post([shared, status, done] { done(status, std::move(shared->charge)); });
      },
      caller_);
  if (!queued.ok()) Finish(queued);
}

bool Call::IsLarge(const RequestMemory::Charge& charge) {
  return charge.bytes() > static_cast<int64_t>(kParsedHere);
}

void Call::DropElsewhere(std::shared_ptr<void> message, std::function<void()> done) {
  // A call that is being destroyed has nothing to be done.
  const std::shared_ptr<Call> self = done == nullptr ? nullptr : shared_from_this();
  const absl::Status queued =
      environment_.parsing.Submit([message = std::move(message), self, done]() mutable {
        message.reset();
        if (done != nullptr) self->Post(done);
      });
  // If the pool's queue is full, the message has been destroyed here, with the task.
  if (!queued.ok() && done != nullptr) Post(done);
}

void Call::Send(std::shared_ptr<const OutputBytes> framed) {
  PHIMAP_CHECK(!over_);
  if (!std::exchange(headers_sent_, true)) stream_->SendHeaders(AnswerHeaders(), /*end=*/false);
  method_.metrics.messages_sent->Increment();
  const bool large = framed->bytes().size() > kAlwaysAnswered;
  if (span_.recorded()) {
    send_span_ = span_.Child("send");
    send_span_.Set("phimap.bytes", static_cast<int64_t>(framed->bytes().size()));
  }
  answer_bytes_ += static_cast<int64_t>(framed->bytes().size());
  stream_->Send(std::move(framed));
  if (large && stream_ != nullptr && !unread_timer_.is_set()) WatchUnread();
}

void Call::WatchUnread() {
  unread_then_ = static_cast<int64_t>(stream_->unsent_bytes());
  if (unread_then_ == 0) return;
  read_then_ = answer_bytes_ - unread_then_;
  unread_watched_since_ = loop_->now();
  loop_->timers().Set(unread_timer_, loop_->now() + PacePeriod());
}

void Call::OnUnreadTime() {
  if (stream_ == nullptr) return;
  const absl::Duration time = loop_->now() - unread_watched_since_;
  const auto unsent = static_cast<int64_t>(stream_->unsent_bytes());
  if (unsent == 0) return;
  const auto read = static_cast<double>(answer_bytes_ - unsent - read_then_);
  const double slowest = SlowestBytesPerSecond(static_cast<double>(unread_then_));
  if (read >= slowest * absl::ToDoubleSeconds(time) ||
      !environment_.memory.IsWantedSince(loop_->now() - 2 * environment_.half_message_time)) {
    return WatchUnread();
  }
  const std::shared_ptr<Call> self = shared_from_this();
  if (over_) return stream_->Reset(ResetCode::kCancel);
  Reset(TooSlow(reason::kReaderTooSlow, "the client read the answer", time, slowest));
}

std::string Call::RevisionToReport() const {
  if (method_.reported_revisions != nullptr)
    return method_.reported_revisions->KnownWithOwnChanges();
  return revisions_ == nullptr ? "" : revisions_->Known();
}

void Call::Reset(const absl::Status& status) {
  cancelled_.store(true, std::memory_order_relaxed);
  End(status, /*reset=*/true);
}

void Call::End(const absl::Status& status, bool reset) {
  if (std::exchange(over_, true)) return;
  try {
    share_ = CallerShares::Share();
    deadline_timer_.Cancel();
    half_message_timer_.Cancel();
    revision_timer_.Cancel();
    source_.Drop();
    OnOver();
    OnEnd(status);
    RecordEnd(environment_, {method_, status, SteadyNow() - started_, peer_, principal_.get(),
                             request_id_, refused_.load() ? refused_mapping_ : "", &names_});
    EndSpan(status);
    if (stream_ == nullptr) return;
    if (reset) return stream_->Reset(ResetCode::kCancel);
    SendStatus(*stream_, status, headers_sent_, request_id_, status.ok() ? RevisionToReport() : "");
  } catch (const std::bad_alloc&) {
    if (stream_ != nullptr) stream_->EndConnection();
  }
}

void Call::EndSpan(const absl::Status& ended) {
  if (!span_.recorded()) return;
  const absl::Status status = AsFaultOfItsSide(ended);
  // The keys are those of OpenTelemetry's conventions for gRPC.
  const std::pair<absl::string_view, absl::string_view> name =
      absl::StrSplit(method_.metrics.full_name, absl::MaxSplits('/', 1));
  span_.Set("rpc.system", "grpc");
  span_.Set("rpc.service", name.first);
  span_.Set("rpc.method", name.second);
  span_.Set("rpc.grpc.status_code", static_cast<int>(status.code()));
  if (principal_ != nullptr) span_.Set("phimap.caller", principal_->name);
  if (!status.ok()) span_.Set("phimap.request_id", request_id_.Text());
  span_.End(status);
}

namespace {

// Whether the caller was refused because of its rights or limits.
bool IsRefusal(const absl::Status& status, absl::string_view refused_mapping) {
  if (status.ok()) return false;
  if (!refused_mapping.empty() || status.code() == Code::kPermissionDenied ||
      status.code() == Code::kUnauthenticated) {
    return true;
  }
  if (status.code() != Code::kResourceExhausted) return false;
  const std::string reason = DetailOf(status).value_or(ErrorDetail()).reason;
  return reason == reason::kCallerRateReached || reason == reason::kStoreShareReached ||
         reason == reason::kCallLimitReached;
}

// Counts the end of a call of a known caller, and writes down a change that was refused.
void RecordOfCaller(const CallEnvironment& environment, const CallEnd& end,
                    const absl::Status& status) {
  const Principal& principal = *end.principal;
  const bool refused = IsRefusal(status, end.refused_mapping);
  if (environment.caller_series != nullptr) {
    const CallerCounters& counters = CountersOf(*environment.caller_series, principal);
    counters.calls->Increment();
    if (refused) counters.refused->Increment();
  }
  if (!refused || environment.refusals == nullptr) return;
  const MethodFacts* const facts = FactsOfMethod(end.method.metrics.full_name);
  if (facts == nullptr || facts->effect == Effect::kReads ||
      facts->effect == Effect::kReadsBuilds) {
    return;
  }
  AuditEntry entry;
  entry.method = end.method.metrics.full_name;
  entry.principal = principal.name;
  entry.peer = std::string(end.peer);
  entry.request_id = end.request_id.Text();
  entry.SetOutcome(status);
  if (end.names != nullptr) {
    const LoggedReference named = ReferenceForLog(end.names->reference);
    const absl::string_view alias = AliasForLog(end.names->alias);
    entry.mapping = std::string(named.mapping);
    entry.alias = std::string(alias.empty() ? named.alias : alias);
    entry.build_id = std::string(BuildIdForLog(end.names->build_id));
    const bool deletes = absl::EndsWith(end.method.metrics.full_name, "/DeleteVersion");
    (deletes ? entry.previous_version : entry.version) = named.version.value_or(0);
    entry.digest = std::string(named.digest);
  }
  if (!end.refused_mapping.empty()) entry.mapping = std::string(end.refused_mapping);
  environment.refusals->Note(std::move(entry));
}

}  // namespace

void RecordEnd(const CallEnvironment& environment, const CallEnd& end) {
  const absl::Status status = AsFaultOfItsSide(end.status);
  end.method.metrics.Ended(status, absl::ToDoubleSeconds(end.time));
  if (end.principal != nullptr) RecordOfCaller(environment, end, status);
  const Logger& logger = environment.logger;
  const bool is_sample = status.ok() && logger.SamplesCall();
  const LogLevel level = is_sample ? LogLevel::kInfo : LevelOf(status.code());
  if (!logger.Enabled(level)) return;
  const LoggedError error = ErrorForLog(status);
  const absl::string_view reference =
      end.names == nullptr ? absl::string_view() : end.names->reference;
  const LoggedReference named = ReferenceForLog(reference);
  // A sample is an event of its own, so that samples, however many, do not displace errors.
  logger.Log(level, is_sample ? "rpc_sample" : "rpc",
             {{"method", end.method.metrics.full_name},
              {"code", error.code},
              {"reason", error.reason},
              {"field", error.field},
              {"mapping", named.mapping},
              {"version", named.version},
              {"alias", named.alias},
              {"digest", named.digest},
              {"seconds", absl::ToDoubleSeconds(end.time)},
              {"peer", end.peer},
              {"caller", end.principal == nullptr ? "" : end.principal->name},
              {"request_id", end.request_id.Text()},
              {"trace_id", end.request_id.TraceId()},
              {"error", error.message}});
}

absl::StatusOr<std::shared_ptr<const OutputBytes>> Call::Frame(
    const google::protobuf::MessageLite& message) const {
  const size_t size = message.ByteSizeLong();
  if (static_cast<int64_t>(size) > environment_.max_message_bytes) {
    return MakeError(Code::kResourceExhausted, reason::kMessageTooLarge, "",
                     absl::StrCat("the answer has ", size, " bytes, over the limit of ",
                                  environment_.max_message_bytes, " (--max_message_bytes)"),
                     {{"limit", absl::StrCat(environment_.max_message_bytes)}});
  }
  std::optional<RequestMemory::Charge> charge =
      size <= kAlwaysAnswered
          ? environment_.memory.TakeUnconditionally(caller_, static_cast<int64_t>(size))
          : environment_.memory.TakeForAnswer(caller_, static_cast<int64_t>(size));
  if (!charge.has_value())
    return environment_.memory.Full(caller_, "the answer", static_cast<int64_t>(size));
  try {
    auto framed = std::make_shared<FramedMessage>(size, *std::move(charge));
    message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(framed->message()));
    return framed;
  } catch (const std::bad_alloc&) {
    return MakeError(Code::kResourceExhausted, reason::kMachineMemoryFull, "",
                     "not enough memory for the answer", {}, /*retry_delay_ms=*/1000);
  }
}

UnaryCall::UnaryCall(const CallStart& start, const MessageCost& request_cost,
                     google::protobuf::MessageLite& request,
                     google::protobuf::MessageLite& response)
    : Call(start, request_cost, MessageSource::WithoutCapacity::kRefuse),
      request_(request),
      response_(response) {}

void UnaryCall::OnBegin() { AwaitRequestUntil(SteadyNow() + kRequestTime); }

absl::Time UnaryCall::waits_since() const { return begun_ ? absl::InfiniteFuture() : last_data(); }

void UnaryCall::OnRequestProgress() {
  if (begun_) return;
  if (!source().has_message()) {
    if (!source().error().ok()) return Call::Finish(source().error());
    return Call::Finish(WrongMessageCount(request_.GetTypeName(), "none"));
  }
  if (source().has_more()) return Call::Finish(WrongMessageCount(request_.GetTypeName(), "more"));
  // A client ends the request with its message, so this wait is for clients that send another.
  if (!source().is_last()) return;
  begun_ = true;
  AwaitRequestUntil(absl::InfiniteFuture());
  std::optional<ChargedMessage> message = source().Next();
  Parse(*std::move(message), request_, [this](const absl::Status& status, RequestMemory::Charge c) {
    if (!status.ok()) return Call::Finish(status);
    charge_ = std::move(c);
    span().Child("receive", SpanKind::kInternal, started()).End();
    NoteNames(NamesInRequest());
    Start();
  });
}

void UnaryCall::Finish(const absl::Status& status) {
  if (!OnLoop()) return Post([this, status] { Finish(status); });
  if (over()) return;
  if (!status.ok()) return Call::Finish(status);
  absl::StatusOr<std::shared_ptr<const OutputBytes>> framed = Frame(response_);
  if (!framed.ok()) return Call::Finish(framed.status());
  Finish(*std::move(framed));
}

void UnaryCall::Finish(std::shared_ptr<const OutputBytes> framed) {
  if (!OnLoop()) {
    return Post([this, framed = std::move(framed)]() mutable { Finish(std::move(framed)); });
  }
  if (over()) return;
  // A client that has its answer may send the next large request, for which there should be memory.
  if (has_large_request()) {
    return DropRequest(TakeCharge(), [this, framed = std::move(framed)] { Finish(framed); });
  }
  Send(std::move(framed));
  Call::Finish(absl::OkStatus());
}

}  // namespace phimap
