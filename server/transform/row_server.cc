#include "server/transform/row_server.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "core/thread/steady_time.h"
#include "server/kernel_client/kernel_examples.h"
#include "server/kernel_client/kernel_queue.h"
#include "server/kernel_client/remote_kernel_rows.h"
#include "server/schedule/batch_policy.h"

namespace phimap {
namespace {

// Space reserved in an answer for everything but its rows.
constexpr int64_t kEnvelopeBytes = 1024;

}  // namespace

// State of a request, shared by the threads that work on it.
struct RowServer::ServedRequest {
  RowRequest request;
  // Null if rows are not tested for drift.
  DriftWatcher* drift;
  // Input of the engine: the request's rows, or their kernel values.
  ExamplesView rows;
  std::unique_ptr<RemoteKernelRows> values = nullptr;
  char* features = nullptr;
  absl::Time batch_began = absl::InfinitePast();
  // When the rows became work for the engine; set if the request is traced.
  absl::Time submitted = absl::InfinitePast();

  const VersionHandle& version() const { return request.version; }

  // Runs on the computing thread.
  absl::StatusOr<char*> Prepare() {
    batch_began = SteadyNow();
    PHIMAP_RETURN_IF_ERROR(values == nullptr ? CheckExamples(rows) : values->Fill());
    features = request.allocate();
    return features;
  }

  // Counts the version's rows, and samples them for drift unless K(x, x) is missing: for a version
  // with a residual ρ, drift is measured by ρ, and ρ needs K(x, x).
  void Account(absl::Time now) const {
    if (version().version_rows() != nullptr) {
      version().version_rows()->Increment(static_cast<double>(rows.rows()));
    }
    const bool self_values = values == nullptr
                                 ? HasSelfValues(version(), rows)
                                 : rows.columns() > version().engine().input_columns();
    if (version().drift() == nullptr || !self_values) return;
    const Engine& engine = version().engine();
    const RowsView made{features, engine.serving_type(), rows.rows(), engine.output_columns()};
    version().drift()->Sample(rows, made, version().residual());
    if (drift != nullptr) drift->Sample(version(), rows, made, now);
  }

  // The time in the queue, and in the batch with which the engine computed the rows.
  void Trace(const absl::Status& status, absl::Time now) const {
    const bool computed = batch_began != absl::InfinitePast();
    request.span.Child("queue", SpanKind::kInternal, submitted)
        .End(computed ? absl::OkStatus() : status, computed ? batch_began : now);
    if (!computed) return;
    Span engine = request.span.Child("engine", SpanKind::kInternal, batch_began);
    engine.Set("phimap.mapping", version().record().mapping);
    engine.Set("phimap.version", version().record().number);
    engine.Set("phimap.rows", rows.rows());
    engine.End(status, now);
  }

  void Done(const absl::Status& status) {
    const absl::Time now = SteadyNow();
    if (request.span.recorded()) Trace(status, now);
    if (status.ok()) Account(now);
    version().tally().RequestEnded(status.ok(), rows.rows(), request.received, batch_began, now);
    request.done(status, rows);
  }
};

void RowServer::AddLoop(EventLoop& loop) {
  stages_.push_back(std::make_unique<Stage>(scheduler_));
  loop.Post([stage = stages_.back().get(), &loop] {
    stage->Attach();
    loop.SetStagedWork(stage);
  });
}

void RowServer::Serve(RowRequest request) {
  PHIMAP_CHECK(request.version.CheckTakes(request.rows).ok());
  const bool remote = request.version.kernel() != nullptr;
  const ExamplesView rows = request.rows;
  auto served = std::make_shared<ServedRequest>(ServedRequest{std::move(request), drift_, rows});
  remote ? ServeRemote(served) : Compute(std::move(served));
}

void RowServer::ServeRemote(const std::shared_ptr<ServedRequest>& served) {
  const RowRequest& request = served->request;
  if (const absl::Status good = CheckExamples(request.rows); !good.ok()) {
    return served->Done(WithFieldPrefix(good, request.field));
  }
  KernelQueue& kernel = *request.version.kernel();
  kernel.Submit({.count = request.rows.rows(),
                 .bytes = AppendedBytes(request.rows, kernel.kind()),
                 .append = [served, as = kernel.kind()](
                               v1::Examples& to) { AppendExamples(served->rows, as, to); },
                 .deadline = request.deadline,
                 .cancelled = request.cancelled,
                 .span = request.span,
                 .done =
                     [this, served, &kernel](absl::StatusOr<KernelRows> values) {
                       if (!values.ok()) {
                         const absl::string_view field = served->request.field;
                         return served->Done(WithFieldPrefix(values.status(), field));
                       }
                       served->values =
                           std::make_unique<RemoteKernelRows>(*std::move(values), kernel);
                       served->rows = served->values->rows();
                       Compute(served);
                     }});
}

void RowServer::Compute(std::shared_ptr<ServedRequest> served) {
  if (served->request.span.recorded()) served->submitted = SteadyNow();
  TransformWork work;
  work.engine = served->version().pinned_engine();
  work.rows = served->rows;
  if (served->values == nullptr) work.field = served->request.field;
  work.deadline = served->request.deadline;
  work.cancelled = served->request.cancelled;
  work.tally = &served->version().tally();
  work.received = served->request.received;
  work.prepare = [served] { return served->Prepare(); };
  work.done = [served](const absl::Status& status) { served->Done(status); };
  const bool leave = WorthAWorker(served->rows.rows(), served->request.others_under_way) &&
                     scheduler_.WorkerSleeps();
  served.reset();
  Stage* const stage = Stage::OfThisThread();
  if (stage != nullptr && !leave && stage->Take(work)) return;
  scheduler_.Submit(std::move(work));
}

int64_t FeatureRowBytes(const VersionHandle& version) {
  const Engine& engine = version.engine();
  return engine.output_columns() * FloatTypeBytes(engine.serving_type());
}

bool HasSelfValues(const VersionHandle& version, const ExamplesView& rows) {
  const Residual* const residual = version.residual();
  // If a kernel service computes the kernel, a version with a residual requests K(x, x) from it
  // too.
  return residual == nullptr || !residual->is_remote() || version.kernel() != nullptr ||
         rows.columns() == version.engine().input_columns() + 1;
}

absl::Status CheckAnswerFits(int64_t row_bytes, int64_t rows, int64_t max_message_bytes) {
  const int64_t fitting = (max_message_bytes - kEnvelopeBytes) / row_bytes;
  if (rows <= fitting) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, reason::kMessageTooLarge, "rows",
                   absl::StrCat("the answer to ", CountOf(rows, "row"), " takes ", rows * row_bytes,
                                " bytes, over the message limit of ", max_message_bytes,
                                "; send at most ", CountOf(fitting, "row"), " at once"),
                   {{"actual", absl::StrCat(rows)}, {"limit", absl::StrCat(fitting)}});
}

namespace {

thread_local Stage* this_thread_stage = nullptr;

// Maximum work in the stage, in quanta of the loop. Further work goes to the pool, because the loop
// must return to its sockets.
constexpr int kMaxQuanta = 4;

// Whether the work was moved into a batch. Its place in the list stays, empty.
bool Gone(const QueuedWork& queued) { return queued.work.engine == nullptr; }

int64_t Rows(const std::vector<QueuedWork>& batch) {
  int64_t rows = 0;
  for (const QueuedWork& queued : batch) rows += queued.RowsLeft();
  return rows;
}

}  // namespace

Stage* Stage::OfThisThread() { return this_thread_stage; }

void Stage::Attach() { this_thread_stage = this; }

bool Stage::Take(TransformWork& work) {
  const absl::Duration alone = scheduler_.Estimate(work);
  if (alone > kLoopQuantum || expected_ + alone > kMaxQuanta * kLoopQuantum) return false;
  std::optional<QueuedWork> queued = scheduler_.Accept(std::move(work));
  if (queued.has_value()) {
    expected_ += alone;
    staged_.push_back(*std::move(queued));
  }
  return true;
}

std::vector<QueuedWork> Stage::NextBatch(std::vector<QueuedWork>& staged, size_t first) {
  std::vector<QueuedWork> batch;
  const Engine* const engine = staged[first].work.engine.get();
  int64_t rows = 0;
  for (size_t i = first; i < staged.size(); ++i) {
    if (staged[i].work.engine.get() != engine) continue;
    if (!batch.empty() && rows + staged[i].RowsLeft() > kBatchRows) break;
    rows += staged[i].RowsLeft();
    batch.push_back(std::move(staged[i]));
    staged[i].work.engine = nullptr;
  }
  return batch;
}

absl::Duration Stage::Expected(const std::vector<QueuedWork>& batch) const {
  absl::Duration expected;
  for (const QueuedWork& queued : batch) expected += scheduler_.Estimate(queued.work);
  return expected;
}

void Stage::RunBatch(std::vector<QueuedWork> batch) {
  if (batch.size() > 1 && WorthHalving(Rows(batch), Expected(batch))) {
    const size_t half = batch.size() / 2;
    std::vector<QueuedWork> later(std::make_move_iterator(batch.begin() + half),
                                  std::make_move_iterator(batch.end()));
    batch.erase(batch.begin() + half, batch.end());
    later = scheduler_.HandOver(std::move(later));
    for (QueuedWork& queued : later) batch.push_back(std::move(queued));
  }
  scheduler_.RunBatch(std::move(batch), scratch_);
}

void Stage::Run() {
  std::vector<QueuedWork> staged;
  staged.swap(staged_);
  expected_ = absl::ZeroDuration();
  // If there is no memory for a list, what it would have held is abandoned, and thereby answered.
  std::vector<std::vector<QueuedWork>> batches;
  for (size_t first = 0; first < staged.size(); ++first) {
    if (!Gone(staged[first])) batches.push_back(NextBatch(staged, first));
  }
  // Sleeping workers get all batches but the last, if the batches have enough rows.
  for (size_t i = 0; i + 1 < batches.size(); ++i) {
    if (Rows(batches[i]) >= kHandOverRows) batches[i] = scheduler_.HandOver(std::move(batches[i]));
  }
  for (std::vector<QueuedWork>& batch : batches) {
    if (!batch.empty()) RunBatch(std::move(batch));
  }
}

}  // namespace phimap
