#include "server/trace/span.h"

#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/utf8.h"
#include "opentelemetry/trace.pb.h"
#include "server/observe/log.h"
#include "server/trace/span_exporter.h"
#include "server/trace/span_ids.h"

namespace phimap {
namespace {

constexpr size_t kMaxValueBytes = 256;
// SpanFlags of OTLP: whether it is known that the parent is in another process, and whether it is.
constexpr uint32_t kRemoteIsKnown = 1 << 8;
constexpr uint32_t kRemote = 1 << 9;

template <typename Id>
std::string BytesOf(const Id& id) {
  return std::string(reinterpret_cast<const char*>(id.data()), id.size());
}

opentelemetry::Span::SpanKind KindOf(SpanKind kind) {
  switch (kind) {
    case SpanKind::kInternal:
      return opentelemetry::Span::SPAN_KIND_INTERNAL;
    case SpanKind::kServer:
      return opentelemetry::Span::SPAN_KIND_SERVER;
    case SpanKind::kClient:
      return opentelemetry::Span::SPAN_KIND_CLIENT;
  }
  return opentelemetry::Span::SPAN_KIND_UNSPECIFIED;
}

std::string Text(absl::string_view value) {
  return value.size() <= kMaxValueBytes && IsUtf8(value) ? std::string(value) : Excerpt(value);
}

// Whether a server's span with this status is an error, by OpenTelemetry's conventions for gRPC.
bool IsFaultOfServer(absl::StatusCode code) {
  using Code = absl::StatusCode;
  for (const Code fault : {Code::kUnknown, Code::kDeadlineExceeded, Code::kUnimplemented,
                           Code::kInternal, Code::kUnavailable, Code::kDataLoss}) {
    if (code == fault) return true;
  }
  return false;
}

}  // namespace

struct Span::Record {
  const SpanContext context;
  opentelemetry::Span data;
};

Span SpanContext::Child(absl::string_view name, SpanKind kind) const {
  return recorded() ? Child(name, kind, SteadyNow()) : Span();
}

Span SpanContext::Child(absl::string_view name, SpanKind kind, absl::Time start) const {
  if (!recorded()) return Span();
  SpanContext child = *this;
  child.place_.parent_id = NewSpanId();
  return Span::Begin(child, &place_, /*remote=*/false, name, kind, start);
}

std::optional<TraceParent> SpanContext::traceparent() const {
  return recorded() ? std::optional<TraceParent>(place_) : std::nullopt;
}

void Span::Delete::operator()(Record* record) const { delete record; }

Span& Span::operator=(Span&& other) noexcept {
  if (this == &other) return *this;
  End();
  record_ = std::move(other.record_);
  return *this;
}

Span Span::Begin(const SpanContext& context, const TraceParent* parent, bool remote,
                 absl::string_view name, SpanKind kind, absl::Time start) {
  try {
    std::unique_ptr<Record, Delete> record(new Record{context, {}});
    opentelemetry::Span& data = record->data;
    data.set_trace_id(BytesOf(context.place_.trace_id));
    data.set_span_id(BytesOf(context.place_.parent_id));
    if (parent != nullptr) data.set_parent_span_id(BytesOf(parent->parent_id));
    data.set_flags(context.place_.flags | kRemoteIsKnown | (remote ? kRemote : 0));
    data.set_name(std::string(name));
    data.set_kind(KindOf(kind));
    data.set_start_time_unix_nano(
        static_cast<uint64_t>(absl::ToUnixNanos(start + context.to_wall_clock_)));
    return Span(std::move(record));
  } catch (const std::bad_alloc&) {
    context.exporter_->DropWithoutMemory();
    return Span();
  }
}

SpanContext Span::context() const { return recorded() ? record_->context : SpanContext(); }

Span Span::Child(absl::string_view name, SpanKind kind) const {
  return recorded() ? record_->context.Child(name, kind) : Span();
}

Span Span::Child(absl::string_view name, SpanKind kind, absl::Time start) const {
  return recorded() ? record_->context.Child(name, kind, start) : Span();
}

template <typename Value>
void Span::SetValue(absl::string_view key, const Value& set) {
  if (!recorded()) return;
  try {
    // Complete before it is added, so that none is added without its value.
    opentelemetry::KeyValue attribute;
    attribute.set_key(std::string(key));
    set(*attribute.mutable_value());
    *record_->data.add_attributes() = std::move(attribute);
  } catch (const std::bad_alloc&) {
    record_->data.set_dropped_attributes_count(record_->data.dropped_attributes_count() + 1);
  }
}

void Span::Set(absl::string_view key, absl::string_view value) {
  SetValue(key, [&](opentelemetry::AnyValue& any) { any.set_string_value(Text(value)); });
}

void Span::Set(absl::string_view key, int64_t value) {
  SetValue(key, [&](opentelemetry::AnyValue& any) { any.set_int_value(value); });
}

void Span::Set(absl::string_view key, double value) {
  SetValue(key, [&](opentelemetry::AnyValue& any) { any.set_double_value(value); });
}

void Span::Set(absl::string_view key, bool value) {
  SetValue(key, [&](opentelemetry::AnyValue& any) { any.set_bool_value(value); });
}

void Span::End(const absl::Status& status, absl::Time end) {
  if (!recorded()) return;
  const std::unique_ptr<Record, Delete> record = std::move(record_);
  SpanExporter& exporter = *record->context.exporter_;
  opentelemetry::Span& data = record->data;
  try {
    data.set_end_time_unix_nano(
        static_cast<uint64_t>(absl::ToUnixNanos(end + record->context.to_wall_clock_)));
    const bool server = data.kind() == opentelemetry::Span::SPAN_KIND_SERVER;
    if (!status.ok() && (!server || IsFaultOfServer(status.code()))) {
      const LoggedError error = ErrorForLog(status);
      data.mutable_status()->set_code(opentelemetry::Status::STATUS_CODE_ERROR);
      const bool has_reason = DetailOf(status).has_value();
      data.mutable_status()->set_message(has_reason ? absl::StrCat(error.code, ": ", error.reason)
                                                    : error.code);
    }
    exporter.Add(std::move(data));
  } catch (const std::bad_alloc&) {
    exporter.DropWithoutMemory();
  }
}

}  // namespace phimap
