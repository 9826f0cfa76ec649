// The C++ client of phimapd.
//
// Example:
//   PHIMAP_ASSIGN_OR_RETURN(auto client, Client::Connect("127.0.0.1:7450", {}));
//   PHIMAP_ASSIGN_OR_RETURN(v1::Version version,
//                           client->Build({.name = "letters", .spec = "f2(landmarks=500)",
//                                          .kernel = "rbf(gamma=scale)", .standardize = true},
//                                         rows));
//   PHIMAP_ASSIGN_OR_RETURN(TransformResult result, client->Transform("letters", block));
#ifndef PHIMAP_CLIENT_CPP_CLIENT_H_
#define PHIMAP_CLIENT_CPP_CLIENT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/row_source.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping.pb.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::client {

// Exponential backoff. With the defaults, the waits take about 16 seconds in total, long enough for
// a supervisor to restart a server. There is no jitter, because a long call belongs to one client:
// no crowd of clients retries at the same moment.
struct RetryPolicy {
  // Maximum number of attempts, including the first.
  int max_attempts = 8;
  absl::Duration initial_backoff = absl::Milliseconds(200);
  absl::Duration max_backoff = absl::Seconds(5);

  // Returns the wait before attempt number `attempt`, counted from 1. REQUIRES: attempt >= 2.
  absl::Duration BackoffBefore(int attempt) const {
    return std::min(max_backoff, initial_backoff * std::exp2(attempt - 2));
  }
};

// TLS settings. Files are given by their paths and are in PEM format.
struct TlsOptions {
  // File with the authorities that may sign the server's TLS certificate, for example
  // /etc/ssl/certs/ca-certificates.crt on Debian. If empty, the connection is not encrypted.
  std::string ca_file = {};
  // The client's own TLS certificate and key, for a server that requires one.
  std::string certificate_file = {};
  std::string key_file = {};
  // The host name that the server's TLS certificate must match. Defaults to the host of the target.
  std::string server_name = {};
};

struct ConnectOptions {
  // Number of connections, 1..64. One connection keeps about one core busy at each end, which is
  // enough for one stream or one caller. With more, concurrent Transform calls can use more cores.
  int channels = 1;
  // Retry policy. Client documents, for each call, the limits within which it applies. max_attempts
  // = 1 turns off all retries, except gRPC's own retries of calls that left no trace on any server.
  RetryPolicy retry;
  // Time limit of a unary call that has no timeout of its own, including all attempts.
  absl::Duration call_timeout = absl::InfiniteDuration();
  TlsOptions tls;
  // Token that authenticates the client, sent with every call; empty if there is none. Connect
  // rejects a token unless the connection uses TLS or stays on this machine.
  std::string token = {};
};

// Value of a parameter in a text: a number, which the server reads back exactly, or a word.
using SpecValue = std::variant<bool, int64_t, double, std::string>;

// Returns the text of a spec, such as "f2(landmarks=500, policy=uniform)", or of a kernel or a
// learner. kInvalidArgument, with the parameter as the field, for a value that a text cannot have.
absl::StatusOr<std::string> SpecText(
    absl::string_view family, const std::vector<std::pair<std::string, SpecValue>>& parameters);

struct BuildOptions {
  // Required. Name of the mapping.
  std::string name = {};
  // Required. The family and its parameters, for example "f2(landmarks=500)".
  std::string spec = {};
  // For example "rbf(gamma=scale)"; empty means the family's default, if it has one.
  std::string kernel = {};
  bool standardize = false;
  uint64_t seed = 0;
  // Time for which the version lives after its last use, at least a minute. Infinite means for
  // ever.
  absl::Duration ttl = absl::InfiniteDuration();
  // A UUID; if empty, the client draws one. If the server has a build with this id, the call
  // attaches to that build.
  std::string build_id = {};
  // Time limit for the whole build, including all attempts.
  absl::Duration timeout = absl::InfiniteDuration();
};

struct BuildProgress {
  // Rows that this client has sent. Counts from 0 again if an attempt sends the rows again.
  int64_t rows_sent = 0;
  // True once all rows and `finish` are sent, or the call has attached to a build that has them.
  bool sent = false;
  // Last report of the server; empty at first.
  v1::BuildJob job;
};

// Called from several threads, but never concurrently. Must not block and must not call the client.
using BuildObserver = std::function<void(const BuildProgress&)>;

struct EvaluateOptions {
  // Required. "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference = {};
  // The learner, for example "perceptron(epochs=20)"; empty means a linear SVM.
  std::string learner = {};
  // Share of the rows that are held out for testing if `folds` is 0; 0 means 0.3.
  double held_out = 0;
  // Number of cross-validation folds; 0 means one split.
  int folds = 0;
  uint64_t seed = 0;
  // Confidence of the certified margins for future rows; 0 means 0.95.
  double confidence = 0;
  // If set, the call fails with FAILED_PRECONDITION unless the version has this digest.
  std::string expected_digest = {};
  absl::Duration timeout = absl::InfiniteDuration();
};

struct EvaluateProgress {
  int64_t rows_sent = 0;
  // True once all rows are sent.
  bool sent = false;
  // Last report of the server; empty at first.
  v1::EvaluateProgress server;
};

// Called from several threads, but never concurrently. Must not block and must not call the client.
using EvaluateObserver = std::function<void(const EvaluateProgress&)>;

struct TransformOptions {
  // If set, the call fails with FAILED_PRECONDITION unless the version has this digest.
  std::string expected_digest = {};
  // Names of the columns of the rows; empty if they have none.
  std::vector<std::string> column_names = {};
  // Whether to return residuals and their allowances. For F2 only.
  bool residual = false;
  absl::Duration timeout = absl::InfiniteDuration();
};

struct TransformResult {
  // The version that answered.
  v1::VersionRef version;
  // The features, in the version's serving type.
  RowBlock features = {};
  // If requested, the residual ρ(x) of each row and the allowance for the rounding of its features;
  // else empty. See TransformResponse.
  std::vector<double> residuals = {};
  std::vector<double> residual_allowances = {};
};

struct TransformStreamOptions {
  std::string expected_digest = {};
  // Adds the residual ρ(x) of each row, a number in [0, K(x, x)], as the last column of the
  // features. For F2 only.
  bool residual = false;
  // Maximum number of unanswered requests, >= 1.
  int window = 8;
  // Rows per request, 1..65536. With 0, the first request has a few rows, and later ones are sized
  // so that a request and its answer are about 512 KiB each.
  int32_t rows_per_request = 0;
  // Time limit for all rows, including all attempts and the time that the source takes.
  absl::Duration timeout = absl::InfiniteDuration();
  // Called with the error before the stream is reopened, on the thread that calls the sink. `wait`
  // is the time until then.
  std::function<void(const absl::Status& error, absl::Duration wait)> on_retry = {};
};

struct TransformStreamResult {
  // The version that mapped all rows.
  v1::VersionRef version;
  int64_t rows = 0;
};

// Receives the features of the next rows, in order. If it returns an error, the stream ends, and
// TransformStream returns that error. All calls come from a single thread, which is not the thread
// that called TransformStream.
using FeatureSink = std::function<absl::Status(RowBlock features)>;

// What a version's head answers: classes or numbers, whichever it was trained for.
enum class HeadTask { kUnspecified, kClasses, kNumbers };

// What Tune may take.
struct Tuning {
  // Time for trials and the version, 1 s to 24 h.
  absl::Duration budget = absl::Minutes(10);
  // No more are tried; 0 means the server's default, 4,096.
  int32_t max_landmarks = 0;
};

// Features that a training builds from its own rows: those that are trained on, and no others.
struct TrainedFeatures {
  // Required. Name of the mapping.
  std::string name = {};
  // As in BuildOptions. Empty, all three, with `tuning`.
  std::string spec = {};
  std::string kernel = {};
  bool standardize = false;
  // Whether length scales of the kernel are learned from the labels, one a column.
  bool learn_scales = false;

  // See Tune.
  std::optional<Tuning> tuning = std::nullopt;
};

struct TrainOptions {
  // "name", "name@7", "name@alias" or "name@sha256:digest": the version whose features the head
  // gets. Empty if `build` is set.
  std::string reference = {};
  std::optional<TrainedFeatures> build = std::nullopt;
  // For example "ridge(alpha=auto)" or "logistic(C=1)"; empty means the server's default.
  std::string learner = {};
  // By default, the server tells by the labels.
  HeadTask task = HeadTask::kUnspecified;
  uint64_t seed = 0;
  // If set, the call fails with FAILED_PRECONDITION unless the version has this digest.
  std::string expected_digest = {};
  // As in BuildOptions.
  absl::Duration ttl = absl::InfiniteDuration();
  std::string build_id = {};
  absl::Duration timeout = absl::InfiniteDuration();
};

// What a prediction has besides labels or values.
struct WantedOutputs {
  bool scores = false;
  bool probabilities = false;
  // A confidence in (0, 1), for sets of classes or for intervals; 0 means none.
  double confidence = 0;
  // Standard deviations; for numbers by ridge.
  bool deviations = false;
};

struct PredictOptions {
  WantedOutputs wanted;
  std::string expected_digest = {};
  // Names of the columns of the rows; empty if they have none.
  std::vector<std::string> column_names = {};
  absl::Duration timeout = absl::InfiniteDuration();
};

// Predictions of some rows. A field that was not asked for, or that the head does not have, is
// empty; the others have one entry per row.
struct Predictions {
  // For classes: their names, and the index of each row's class among them.
  std::vector<std::string> classes = {};
  std::vector<int32_t> labels = {};
  // For numbers.
  std::vector<double> values = {};
  // Row after row: one score for two classes and for a number, and otherwise one for each class;
  // one probability for each class.
  std::vector<double> scores = {};
  std::vector<double> probabilities = {};
  // For classes: the set of each row, as indices among `classes`.
  std::vector<std::vector<int32_t>> sets = {};
  // For numbers: the ends of each row's interval; infinite if too few rows calibrated the head.
  std::vector<double> interval_lows = {};
  std::vector<double> interval_highs = {};
  std::vector<double> deviations = {};

  int32_t rows() const {
    return static_cast<int32_t>(values.empty() ? labels.size() : values.size());
  }
};

struct PredictResult {
  // The version that answered.
  v1::VersionRef version;
  Predictions predictions;
};

struct PredictStreamOptions {
  WantedOutputs wanted;
  // The others as in TransformStreamOptions.
  std::string expected_digest = {};
  int window = 8;
  int32_t rows_per_request = 0;
  absl::Duration timeout = absl::InfiniteDuration();
  std::function<void(const absl::Status& error, absl::Duration wait)> on_retry = {};
};

struct PredictStreamResult {
  // The version that answered all rows.
  v1::VersionRef version;
  int64_t rows = 0;
};

// Receives the predictions of the next rows, as FeatureSink receives features.
using PredictionSink = std::function<absl::Status(Predictions predictions)>;

// Takes the next bytes of an artifact, in order. An error ends the export and is returned from it.
// The bytes are verified only once Export has returned OK.
using ArtifactSink = std::function<absl::Status(absl::string_view bytes)>;
// Returns the next 1..max_bytes bytes of an artifact; empty at its end.
using ArtifactSource = std::function<absl::StatusOr<std::string>(size_t max_bytes)>;

struct ExportResult {
  // The version written; its digest is the SHA-256 of the bytes.
  v1::VersionRef version;
  int64_t size_bytes = 0;
};

// Returns a reference to one version, such as "letters@3". One that no server stores has no number,
// and is its name: the path of its file.
inline std::string ReferenceTo(const v1::VersionRef& version) {
  return version.number() == 0 ? version.name()
                               : absl::StrCat(version.name(), "@", version.number());
}

// The calls that take rows, and that describe what answers them. A server computes them (Client),
// or this process, where a reference is the path of an artifact. The functions are described in
// Client.
class RowCalls {
 public:
  virtual ~RowCalls() = default;
  virtual absl::StatusOr<v1::Version> Build(const BuildOptions& options, RowSource& source,
                                            const BuildObserver& observer = nullptr,
                                            CancelToken* cancel = nullptr) = 0;
  virtual absl::StatusOr<v1::EstimateBuildResponse> EstimateBuild(const BuildOptions& options,
                                                                  int64_t rows,
                                                                  int32_t columns) = 0;
  virtual absl::StatusOr<v1::Version> Train(const TrainOptions& options, LabeledRowSource& source,
                                            const BuildObserver& observer = nullptr,
                                            CancelToken* cancel = nullptr) = 0;
  virtual absl::StatusOr<v1::Version> Tune(const TrainOptions& options, LabeledRowSource& source,
                                           const BuildObserver& observer = nullptr,
                                           CancelToken* cancel = nullptr) = 0;
  virtual absl::StatusOr<TransformStreamResult> TransformStream(
      absl::string_view reference, RowSource& source, const FeatureSink& sink,
      const TransformStreamOptions& options = {}, CancelToken* cancel = nullptr) = 0;
  virtual absl::StatusOr<PredictStreamResult> PredictStream(
      absl::string_view reference, RowSource& source, const PredictionSink& sink,
      const PredictStreamOptions& options = {}, CancelToken* cancel = nullptr) = 0;
  virtual absl::StatusOr<v1::Evaluation> Evaluate(const EvaluateOptions& options,
                                                  LabeledRowSource& source,
                                                  const EvaluateObserver& observer = nullptr,
                                                  CancelToken* cancel = nullptr) = 0;
  virtual absl::StatusOr<v1::Version> GetVersion(absl::string_view reference, bool wait = true) = 0;
  virtual absl::StatusOr<ExportResult> Export(absl::string_view reference, const ArtifactSink& sink,
                                              CancelToken* cancel = nullptr) = 0;
};

// A client of one server, or of several equivalent servers. Connections are opened on first use and
// reopened when they break. Transform calls use the connections round-robin, each TransformStream
// stays on one connection, and all other calls use the first. Proxy settings in the environment are
// ignored. A message has at most 64 MiB in each direction.
//
// Retries. A call may be retried if it fails with kUnavailable or its error has a retry delay. Up
// to 5 attempts are made within the call's deadline; they take about 3 seconds, unless the server
// asks for longer delays. The rules of some calls differ:
//
// Each change is sent with an id of its own, so that the store makes it once, and a retry gets the
// first answer: SetAlias, DeleteAlias, KeepVersion, DeleteVersion, DeleteMapping.
//
// Build, Train, TransformStream and PredictStream have rules of their own; see these functions.
// Export is retried only until its first bytes arrive.
//
// Not retried: Import, Evaluate, CheckHealth.
//
// Column names. Rows can have column names (RowSource::column_names, TransformOptions). A version
// maps such rows only if it has no column names, or the same names in the same order. Otherwise the
// call returns kInvalidArgument (reason COLUMN_NAMES_MISMATCH), and the message says which names
// differ.
//
// Errors have the server's code, message and details (DetailOf). If the server cannot be reached,
// the error is kUnavailable. If the call's token is cancelled, the error is kCancelled.
//
// Thread-safe.
class Client final : public RowCalls {
 public:
  // Creates a client for `target`. For one server, the target is "host:port", "[::1]:port" or
  // "unix:/path/of/socket". For several servers, it is "ipv4:10.0.0.1:7450,10.0.0.2:7450",
  // "ipv6:[::1]:7450,[::2]:7450" or "dns:///host:port".
  //
  // With several servers, calls go to their addresses in turn (gRPC's round_robin). An unreachable
  // address is skipped until it can be reached. If the servers share a store, each of them can
  // answer any call, and this client sees its own changes on each of them. If they have separate
  // stores, they must have the same versions, and builds and changes should go to one of them by
  // its own address.
  //
  // Returns kInvalidArgument for any other target, for options that contradict each other and for
  // files that cannot be read. Does not block.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(absl::string_view target,
                                                         const ConnectOptions& options);
  ~Client() override;

  // Builds a version from all rows of `source`, in bounded memory. If the server refuses the build
  // while rows are still being sent, the call returns the error at once.
  //
  // If the connection breaks after the server has accepted the build, the call reconnects with the
  // same build_id (ConnectOptions::retry). If the server has all rows of the build, the build
  // continues. If the server has lost the build and the source can rewind, the rows are sent again.
  // If the source cannot rewind, the call returns kAborted.
  //
  // Cancelling the call also cancels the build on the server. If the version was already published,
  // the error message contains the version.
  absl::StatusOr<v1::Version> Build(const BuildOptions& options, RowSource& source,
                                    const BuildObserver& observer = nullptr,
                                    CancelToken* cancel = nullptr) override;

  // Maps the examples of one block in one call.
  absl::StatusOr<TransformResult> Transform(absl::string_view reference, ExampleBlock rows,
                                            const TransformOptions& options = {});
  // Maps all rows of `source` over one stream, with up to `window` requests in flight. The
  // reference is resolved once, so one version maps all rows. Returns kInvalidArgument if the
  // source has no rows.
  //
  // If the connection breaks or cannot be made, the call reconnects. The limit is
  // ConnectOptions::retry.max_attempts attempts in a row without an answer. Before the first
  // answer, the limit is at most 5 attempts, which take about 3 seconds.
  //
  // After a reconnection, only unanswered requests are sent again, and to the same version. The
  // version is identified by its number. If that number is gone or now has another digest, the
  // version is identified by its digest. The same applies to a reference by number with an
  // expected_digest. If no version has the digest, the error is kNotFound or kFailedPrecondition.
  absl::StatusOr<TransformStreamResult> TransformStream(absl::string_view reference,
                                                        RowSource& source, const FeatureSink& sink,
                                                        const TransformStreamOptions& options = {},
                                                        CancelToken* cancel = nullptr) override;

  // Trains a head on a version, and makes the next version of the same name, which has the same
  // features and predicts. Repeats, cancellation and errors are those of Build.
  absl::StatusOr<v1::Version> Train(const TrainOptions& options, LabeledRowSource& source,
                                    const BuildObserver& observer = nullptr,
                                    CancelToken* cancel = nullptr) override;

  // Chooses kernel, length scales, landmarks and, if `options` has none, the learner, by labeled
  // rows, and trains the version that has them: Train with `options.build`, of which `name` is
  // needed and `tuning` may be set. The version's TrainingReport.trials says what was tried.
  absl::StatusOr<v1::Version> Tune(const TrainOptions& options, LabeledRowSource& source,
                                   const BuildObserver& observer = nullptr,
                                   CancelToken* cancel = nullptr) override;

  // Predicts the examples of one block in one call, by the head of a version.
  absl::StatusOr<PredictResult> Predict(absl::string_view reference, ExampleBlock rows,
                                        const PredictOptions& options = {});
  // Predicts all rows of `source` over one stream. Everything that TransformStream says holds.
  absl::StatusOr<PredictStreamResult> PredictStream(absl::string_view reference, RowSource& source,
                                                    const PredictionSink& sink,
                                                    const PredictStreamOptions& options = {},
                                                    CancelToken* cancel = nullptr) override;

  // Trains and tests a learner on all rows of `source`, mapped by one version. Nothing is stored:
  // if the connection breaks, the call returns kUnavailable, and the rows must be sent again.
  absl::StatusOr<v1::Evaluation> Evaluate(const EvaluateOptions& options, LabeledRowSource& source,
                                          const EvaluateObserver& observer = nullptr,
                                          CancelToken* cancel = nullptr) override;

  // Returns all mappings, ordered by name.
  absl::StatusOr<std::vector<v1::Mapping>> ListMappings();
  absl::StatusOr<v1::Mapping> GetMapping(absl::string_view name);
  // Returns all versions of a mapping, newest first, without certificates.
  absl::StatusOr<std::vector<v1::Version>> ListVersions(absl::string_view name);
  // `reference` is "name", "name@7", "name@alias" or "name@sha256:" with at least 7 digits of the
  // digest.
  //
  // Without `wait`, does not wait for the server's database: while it is away, returns kUnavailable
  // after one attempt, which takes at most about a second.
  absl::StatusOr<v1::Version> GetVersion(absl::string_view reference, bool wait = true) override;
  absl::StatusOr<v1::BuildJob> GetBuild(absl::string_view name, absl::string_view build_id);
  absl::StatusOr<v1::BuildJob> CancelBuild(absl::string_view name, absl::string_view build_id);
  // Returns the builds that the servers know, newest first: of one mapping, or of all if `name` is
  // empty.
  absl::StatusOr<std::vector<v1::BuildJob>> ListBuilds(absl::string_view name = "");

  // Points an alias at a version: `reference` is "name@7" or "name@sha256:" with at least 7 digits
  // of the digest. `etag` is a condition on the alias. An empty `etag` sets no condition. "*"
  // requires that the alias exists, "none" that it does not exist, and any other value that the
  // alias has this etag. If the condition is not met, returns kAborted, with the current etag in
  // DetailOf(status)->metadata["etag"].
  absl::StatusOr<v1::Alias> SetAlias(absl::string_view reference, absl::string_view alias,
                                     absl::string_view etag = "");
  // Points an alias back at its previous version. A second call undoes the first. Returns kAborted
  // if another client moves the alias meanwhile, and kFailedPrecondition if it has never moved or
  // the previous version was deleted.
  absl::StatusOr<v1::Alias> RollBackAlias(absl::string_view name, absl::string_view alias);
  absl::Status DeleteAlias(absl::string_view name, absl::string_view alias,
                           absl::string_view etag = "");
  // Deletes a version, given as in SetAlias. Returns kFailedPrecondition while an alias points at
  // it or, unless `give_up_rollback` is set, while an alias could be rolled back to it.
  absl::Status DeleteVersion(absl::string_view reference, bool give_up_rollback = false);
  // Deletes a mapping. With `only_if_empty`, returns kFailedPrecondition if the mapping has
  // versions.
  absl::Status DeleteMapping(absl::string_view name, bool only_if_empty = false);
  // Sets the lifetime of a version: it lives for `ttl` after its last use, starting now, or for
  // ever if `ttl` is infinite. Returns kFailedPrecondition if the version would expire sooner than
  // before. The returned version has no certificate.
  absl::StatusOr<v1::Version> KeepVersion(absl::string_view reference, absl::Duration ttl);

  // Writes a version's artifact to `sink`. Checks each chunk and, at the end, the whole artifact.
  absl::StatusOr<ExportResult> Export(absl::string_view reference, const ArtifactSink& sink,
                                      CancelToken* cancel = nullptr) override;
  // Stores the artifact that `source` yields as a version of the mapping `name`. Safe to repeat: if
  // a version already has this artifact, returns that version.
  absl::StatusOr<v1::Version> Import(absl::string_view name, const ArtifactSource& source,
                                     CancelToken* cancel = nullptr);

  // Returns everything that the server can build and learn, each with its parameters and a line of
  // text.
  absl::StatusOr<v1::ListCapabilitiesResponse> ListCapabilities();
  // Returns the evidence for drift of each alias of a mapping.
  absl::StatusOr<v1::GetDriftResponse> GetDrift(absl::string_view name);
  // Returns one page of the audit, newest entries first. Needs the role admin.
  absl::StatusOr<v1::ListAuditEntriesResponse> ListAuditEntries(
      const v1::ListAuditEntriesRequest& request);
  // Returns the numbers of landmarks and dimensions that suffice for a margin, an error and a
  // confidence.
  absl::StatusOr<v1::AdviseResponse> Advise(const v1::AdviseRequest& request);
  // Estimates the cost of a Build with `options` on `rows` rows of `columns` columns.
  absl::StatusOr<v1::EstimateBuildResponse> EstimateBuild(const BuildOptions& options, int64_t rows,
                                                          int32_t columns) override;
  // Returns whether the server serves `service`, such as "phimap.v1.TransformService", according to
  // the standard health protocol. An empty `service` means the server as a whole. Returns false
  // while the server drains, and kNotFound if it has no such service.
  absl::StatusOr<bool> CheckHealth(absl::string_view service, absl::Duration timeout);

 private:
  class Connection;

  explicit Client(std::unique_ptr<Connection> connection);

  const std::unique_ptr<Connection> connection_;
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_CLIENT_H_
