// The C++ client of phimapd.
//
// Example:
//   PHIMAP_ASSIGN_OR_RETURN(auto client, Client::Connect("127.0.0.1:7450", {}));
//   PHIMAP_ASSIGN_OR_RETURN(v1::Version version,
//                           client->Build({.mapping = "letters", .mapping_text =
//                           "f2(landmarks=500)",
//                                          .kernel_text = "rbf(gamma=scale)", .standardize = true},
//                                          rows));
//   PHIMAP_ASSIGN_OR_RETURN(TransformResult result, client->Transform("letters", block));
#ifndef PHIMAP_CLIENT_CPP_CLIENT_H_
#define PHIMAP_CLIENT_CPP_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/retry_policy.h"
#include "client/cpp/row_source.h"
#include "phimap/v1/evaluation_service.pb.h"
#include "phimap/v1/mapping.pb.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::client {

// Paths of PEM files.
struct TlsOptions {
  // Authorities that may sign the server's TLS certificate; if empty, the connection is not
  // encrypted. Debian's are in /etc/ssl/certs/ca-certificates.crt.
  std::string ca_file = {};
  // The client's own TLS certificate and key, for a server that requires one.
  std::string certificate_file = {};
  std::string key_file = {};
  // Name that the server's TLS certificate must have, if it is not the host of the target.
  std::string server_name = {};
};

struct ConnectOptions {
  // Number of connections, 1..64. One connection takes about a core at either end, enough for any
  // one stream or caller. More connections let concurrent Transform calls use more cores.
  int channels = 1;
  // Policy for retries, within the rules of each call (see Client). max_attempts = 1 turns off all
  // retries except gRPC's own, of calls that reached no server.
  RetryPolicy retry;
  // Limit for a call other than a stream, with all its attempts.
  absl::Duration call_timeout = absl::InfiniteDuration();
  TlsOptions tls;
  // Token that is sent with every call; empty: none. Sent only over TLS or within this machine:
  // Connect refuses a token that others could read in transit.
  std::string token = {};
};

struct BuildOptions {
  // Required. Name of the mapping.
  std::string mapping = {};
  // Required. For example "f2(landmarks=500)".
  std::string mapping_text = {};
  // Required. For example "rbf(gamma=scale)".
  std::string kernel_text = {};
  bool standardize = false;
  uint64_t seed = 0;
  // Time for which the version lives after its last use, at least a minute; infinite: for ever.
  absl::Duration ttl = absl::InfiniteDuration();
  // A UUID; empty draws one. A known id attaches to its build.
  std::string build_id = {};
  // Limit for the whole build with all its attempts.
  absl::Duration timeout = absl::InfiniteDuration();
};

struct BuildProgress {
  // Rows that this client has sent. Restarts at 0 if the rows are sent again.
  int64_t rows_sent = 0;
  // True once all rows and the finish are sent, or if this client follows an existing build.
  bool sent = false;
  // Last report of the server; empty at first.
  v1::BuildJob job;
};

// Called from several threads, but never concurrently. Must not block and must not call the client.
using BuildObserver = std::function<void(const BuildProgress&)>;

struct EvaluateOptions {
  // Required. "name", "name@7", "name@alias" or "name@sha256:digest".
  std::string reference = {};
  // For example "perceptron(epochs=20)"; empty: a linear SVM.
  std::string learner = {};
  // Share of the rows that is tested if `folds` is 0; 0 means 0.3.
  double held_out = 0;
  // 0: one split.
  int folds = 0;
  uint64_t seed = 0;
  // Confidence of the certified margins for future rows; 0: 0.95.
  double confidence = 0;
  // If set, another digest is FAILED_PRECONDITION.
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
  // If set, another digest is FAILED_PRECONDITION.
  std::string expected_digest = {};
  // Names of the columns of the rows; empty if they have none.
  std::vector<std::string> column_names = {};
  absl::Duration timeout = absl::InfiniteDuration();
};

struct TransformResult {
  // The version that answered.
  v1::VersionRef version;
  // In the version's serving type.
  RowBlock features = {};
};

struct TransformStreamOptions {
  std::string expected_digest = {};
  // Adds one column to the features, the last: the residual ρ(x) of each row. For F2 only.
  bool residual = false;
  // Maximum number of unanswered requests, >= 1.
  int window = 8;
  // Rows per request, 1..65536. 0 sends few rows first and then chooses requests whose size, with
  // their answer, is about 512 KiB.
  int32_t rows_per_request = 0;
  // Limit for all rows with all attempts, including the time that the source takes.
  absl::Duration timeout = absl::InfiniteDuration();
  // Called before the stream is retried, with the error and the time until then, on the thread that
  // calls the sink.
  std::function<void(const absl::Status& error, absl::Duration wait)> on_retry = {};
};

struct TransformStreamResult {
  // The version that answered, one for the whole stream.
  v1::VersionRef version;
  int64_t rows = 0;
};

// Takes the features of the next rows, in order. An error ends the stream and is returned from
// TransformStream. Called from one thread that is not the caller's.
using FeatureSink = std::function<absl::Status(RowBlock features)>;

// Takes the next bytes of an artifact, in order. An error ends the export and is returned from it.
// The bytes are verified only when Export returns OK.
using ArtifactSink = std::function<absl::Status(absl::string_view bytes)>;
// Returns the next bytes of an artifact, 1..max_bytes; an empty text at its end.
using ArtifactSource = std::function<absl::StatusOr<std::string>(size_t max_bytes)>;

struct ExportResult {
  // The version written; its digest is the SHA-256 of the bytes.
  v1::VersionRef version;
  int64_t size_bytes = 0;
};

// Connections to a server, each made when first needed and again after it broke. Transform calls
// rotate through them, a TransformStream stays on the next one, and everything else uses the first.
// Proxies of the environment are ignored; messages may have 64 MiB each way.
//
// A call that fails with kUnavailable, or with a retry delay, is retried: reads and Transform up to
// 5 times, which takes about 3 seconds unless the server asks for more, and never beyond the call's
// deadline; Build and TransformStream as described there. A call that changes something (SetAlias,
// DeleteAlias, DeleteVersion, DeleteMapping) is retried only if the server reports that it did not
// begin it (reason SERVER_SHUTTING_DOWN): between two attempts another client may have changed the
// alias or version. Export is retried as long as no bytes have arrived. Import, Evaluate and
// CheckHealth are not retried.
//
// Rows whose columns have names (RowSource::column_names, TransformOptions) are mapped only by a
// version whose columns have no names, or the same names in the same order. Otherwise the call is
// kInvalidArgument (reason COLUMN_NAMES_MISMATCH), with both lists in the message.
//
// Errors are the server's: its code, message and details (DetailOf). A server that cannot be
// reached is kUnavailable. A cancelled token makes a call return kCancelled.
//
// Thread-safe.
class Client {
 public:
  // `target` is "host:port", "[::1]:port" or "unix:/path/of/socket"; or names several servers:
  // "ipv4:10.0.0.1:7450,10.0.0.2:7450", "ipv6:[::1]:7450,[::2]:7450" or "dns:///host:port", whose
  // addresses take the calls in turn (gRPC's round_robin). Unreachable addresses are left out until
  // they can be reached. If they share a store, any of them may answer any call, and this client
  // sees its own changes on each. If each has its own store, they must have the same versions, and
  // builds and changes should name one server. Anything else is kInvalidArgument, as are options
  // that contradict each other and files that cannot be read. Does not wait.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(absl::string_view target,
                                                         const ConnectOptions& options);
  virtual ~Client() = default;

  // Builds a version from all rows of `source`, in bounded memory. A build that the server refuses
  // while rows are still being sent returns that error at once.
  //
  // A connection that breaks after the server accepted the build is retried with the same build_id
  // (ConnectOptions::retry), and a build that has all its rows continues. If the server has lost
  // the build, the rows are sent again if the source can rewind; otherwise the error is kAborted.
  //
  // On cancellation the server's build is cancelled too. If it was already published the error
  // names the version.
  virtual absl::StatusOr<v1::Version> Build(const BuildOptions& options, RowSource& source,
                                            const BuildObserver& observer = nullptr,
                                            CancelToken* cancel = nullptr) = 0;

  // Maps the examples of one block in one call.
  virtual absl::StatusOr<TransformResult> Transform(absl::string_view reference, ExampleBlock rows,
                                                    const TransformOptions& options = {}) = 0;
  // Maps all rows of `source` over one stream, with `window` requests in flight. The reference is
  // resolved once: one version maps all rows. A source without rows is kInvalidArgument.
  //
  // If the connection breaks or cannot be made, it is retried until a number of consecutive
  // attempts (ConnectOptions::retry) has brought no answer; before the first answer at most 5,
  // about 3 seconds. Only unanswered requests are sent again, to the same version: by its number
  // or, if that was deleted or has another digest now, by its digest. A reference by number with an
  // expected_digest falls back in the same way. If no version has the digest, the error is
  // kNotFound or kFailedPrecondition.
  virtual absl::StatusOr<TransformStreamResult> TransformStream(
      absl::string_view reference, RowSource& source, const FeatureSink& sink,
      const TransformStreamOptions& options = {}, CancelToken* cancel = nullptr) = 0;

  // Trains and tests a learner on all rows of `source`, mapped by one version. Nothing is stored.
  // If the connection breaks the call fails with kUnavailable, and must be repeated from the first
  // row.
  virtual absl::StatusOr<v1::Evaluation> Evaluate(const EvaluateOptions& options,
                                                  LabeledRowSource& source,
                                                  const EvaluateObserver& observer = nullptr,
                                                  CancelToken* cancel = nullptr) = 0;

  // All mappings by name, all pages.
  virtual absl::StatusOr<std::vector<v1::Mapping>> ListMappings() = 0;
  virtual absl::StatusOr<v1::Mapping> GetMapping(absl::string_view mapping) = 0;
  // All versions of a mapping, newest first, all pages, without certificates.
  virtual absl::StatusOr<std::vector<v1::Version>> ListVersions(absl::string_view mapping) = 0;
  // `reference` is "name", "name@7", "name@alias" or "name@sha256:" with at least 7 digits of the
  // digest.
  virtual absl::StatusOr<v1::Version> GetVersion(absl::string_view reference) = 0;
  virtual absl::StatusOr<v1::BuildJob> GetBuild(absl::string_view mapping,
                                                absl::string_view build_id) = 0;
  virtual absl::StatusOr<v1::BuildJob> CancelBuild(absl::string_view mapping,
                                                   absl::string_view build_id) = 0;

  // Points an alias at a version. `etag`: empty is unconditional, "*" requires that the alias
  // exists, "none" that it does not, and any other text that it has this etag. Otherwise kAborted,
  // with the current etag in DetailOf(status)->metadata["etag"].
  virtual absl::StatusOr<v1::Alias> SetAlias(absl::string_view mapping, absl::string_view alias,
                                             int64_t version, absl::string_view etag = "") = 0;
  // Points an alias at the version whose digest begins with `digest`, which has at least 7 digits.
  virtual absl::StatusOr<v1::Alias> SetAliasToDigest(absl::string_view mapping,
                                                     absl::string_view alias,
                                                     absl::string_view digest,
                                                     absl::string_view etag = "") = 0;
  // Points an alias back at its previous version, unless another client moves it meanwhile
  // (kAborted). A second call undoes the first. kFailedPrecondition if it has never moved, or if
  // the previous version was deleted.
  virtual absl::StatusOr<v1::Alias> RollBackAlias(absl::string_view mapping,
                                                  absl::string_view alias) = 0;
  virtual absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                                   absl::string_view etag = "") = 0;
  // kFailedPrecondition while an alias points at the version, or would be rolled back to it, unless
  // that rollback is given up.
  virtual absl::Status DeleteVersion(absl::string_view mapping, int64_t version,
                                     bool give_up_rollback = false) = 0;
  // With `only_if_empty` a mapping that has versions is kFailedPrecondition.
  virtual absl::Status DeleteMapping(absl::string_view mapping, bool only_if_empty = false) = 0;
  // Lets a version live for ever (infinite), or for `ttl` after its last use, starting now;
  // kFailedPrecondition if that would shorten its life. Returns the version without its
  // certificate.
  virtual absl::StatusOr<v1::Version> KeepVersion(absl::string_view reference,
                                                  absl::Duration ttl) = 0;

  // Reads a version's artifact into `sink`, checked chunk by chunk and, at the end, as a whole.
  virtual absl::StatusOr<ExportResult> Export(absl::string_view reference, const ArtifactSink& sink,
                                              CancelToken* cancel = nullptr) = 0;
  // Stores the artifact that `source` yields as a version of `mapping`. Safe to repeat: if a
  // version has the same artifact already, returns that version.
  virtual absl::StatusOr<v1::Version> Import(absl::string_view mapping,
                                             const ArtifactSource& source,
                                             CancelToken* cancel = nullptr) = 0;

  // Returns everything that the server can build and learn, with parameters and a line of text
  // each.
  virtual absl::StatusOr<v1::ListCapabilitiesResponse> ListCapabilities() = 0;
  // Dimensions that suffice for a margin, an error and a confidence.
  virtual absl::StatusOr<v1::AdviseResponse> Advise(const v1::AdviseRequest& request) = 0;
  // Estimates the cost of a Build with these options for `rows` rows of `columns` columns.
  virtual absl::StatusOr<v1::EstimateBuildResponse> EstimateBuild(const BuildOptions& options,
                                                                  int64_t rows,
                                                                  int32_t columns) = 0;
  // Asks the standard health protocol whether the server serves `service`
  // ("phimap.v1.TransformService"; empty: the server as a whole). False while it drains. NOT_FOUND
  // for an unknown service.
  virtual absl::StatusOr<bool> CheckHealth(absl::string_view service, absl::Duration timeout) = 0;

 protected:
  Client() = default;
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_CLIENT_H_
