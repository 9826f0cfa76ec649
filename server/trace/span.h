// A span: one timed step of what the server does for a call, as OpenTelemetry has it. Spans that
// belong together have the same trace id, and each but the first names its parent.
//
// Example:
//   Span call = tracer.Start("phimap.v1.TransformService/Transform", SpanKind::kServer, parent);
//   Span parse = call.Child("parse");
//   parse.End();
//   call.Set("phimap.rows", rows);
//   call.Child("queue", SpanKind::kInternal, submitted_at).End(absl::OkStatus(), taken_at);
//   call.End(status);
//
// A span of a trace that is not recorded is a null pointer: its functions return at once, and its
// children are not recorded either.
#ifndef PHIMAP_SERVER_TRACE_SPAN_H_
#define PHIMAP_SERVER_TRACE_SPAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/thread/steady_time.h"
#include "server/observe/trace_parent.h"

namespace phimap {

class Span;
class SpanExporter;

enum class SpanKind {
  kInternal,
  // Answers a call from another process.
  kServer,
  // Calls another process.
  kClient,
};

// The place of a span in its trace: all that its children need. It may outlive the span, so work on
// another thread takes a copy. Immutable, thread-safe, cheap to copy; the default is that of a span
// that is not recorded. REQUIRES: the tracer outlives it.
class SpanContext {
 public:
  SpanContext() = default;

  bool recorded() const { return exporter_ != nullptr; }
  // Begins a child. `start`: a time of SteadyNow.
  Span Child(absl::string_view name, SpanKind kind = SpanKind::kInternal) const;
  Span Child(absl::string_view name, SpanKind kind, absl::Time start) const;
  // What a call to another process has as its header traceparent; nullopt if nothing is recorded.
  std::optional<TraceParent> traceparent() const;

 private:
  friend class Span;
  friend class Tracer;
  SpanContext(SpanExporter& exporter, const TraceParent& place, absl::Duration to_wall_clock)
      : exporter_(&exporter), place_(place), to_wall_clock_(to_wall_clock) {}

  SpanExporter* exporter_ = nullptr;
  // The trace, and the span itself as the parent of others.
  TraceParent place_{};
  // The wall clock less SteadyNow, when the first span of this process began. One difference for
  // the whole trace, so that a jump of the wall clock does not put a child outside of its parent.
  absl::Duration to_wall_clock_;
};

// Requires: names of spans and keys are literals or names of methods, never made from data. Values
// are names, counts and durations, never rows or features.
// Guarantees: no function waits or throws. If there is no memory for a span or a value, it is left
// out, and a span is counted as dropped.
// Thread-safety: a span belongs to one thread at a time.
class Span {
 public:
  // A span that is not recorded.
  Span() = default;
  // Ends the span, if End was not called.
  ~Span() { End(); }
  Span(Span&& other) noexcept = default;
  Span& operator=(Span&& other) noexcept;

  bool recorded() const { return record_ != nullptr; }
  SpanContext context() const;
  // As context().Child.
  Span Child(absl::string_view name, SpanKind kind = SpanKind::kInternal) const;
  Span Child(absl::string_view name, SpanKind kind, absl::Time start) const;

  // Adds an attribute. A text of over 256 bytes, or that is not UTF-8, is cut and escaped.
  void Set(absl::string_view key, absl::string_view value);
  void Set(absl::string_view key, const char* value) { Set(key, absl::string_view(value)); }
  void Set(absl::string_view key, int64_t value);
  void Set(absl::string_view key, int value) { Set(key, int64_t{value}); }
  void Set(absl::string_view key, double value);
  void Set(absl::string_view key, bool value);

  // Ends the span and hands it over to be sent. Later calls do nothing. An error marks the span,
  // with its code and reason (ErrorForLog: no message that quotes a client's data); if the span is
  // of kind kServer, only an error that is the server's fault does, as OpenTelemetry wants it.
  void End(const absl::Status& status = absl::OkStatus()) {
    if (recorded()) End(status, SteadyNow());
  }
  // Ends a step at `end`, a time of SteadyNow, as the other End() does now.
  void End(const absl::Status& status, absl::Time end);

 private:
  friend class SpanContext;
  friend class Tracer;
  struct Record;
  struct Delete {
    void operator()(Record* record) const;
  };

  // Begins a span at `context`. `parent`: null if it is the first of its trace. `remote`: whether
  // the parent is in another process.
  static Span Begin(const SpanContext& context, const TraceParent* parent, bool remote,
                    absl::string_view name, SpanKind kind, absl::Time start);
  explicit Span(std::unique_ptr<Record, Delete> record) : record_(std::move(record)) {}
  // Has `set` fill in the value of a new attribute, or counts the attribute as dropped.
  template <typename Value>
  void SetValue(absl::string_view key, const Value& set);

  std::unique_ptr<Record, Delete> record_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRACE_SPAN_H_
