// Builds, trainings and evaluations in this process: the messages of the API and rows in, an
// artifact or an evaluation out, with the bytes and the errors of a server that gets the same
// stream.
//
//   PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<LocalJob> job, BuildLocally(spec, threads));
//   while (rows come) job->Add(rows, {}, monitor);
//   PHIMAP_ASSIGN_OR_RETURN(const std::string artifact, job->Finish(monitor));
#ifndef PHIMAP_CLIENT_LOCAL_LOCAL_JOB_H_
#define PHIMAP_CLIENT_LOCAL_LOCAL_JOB_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/feature_map/feature_map.h"
#include "core/mapping/build/build_progress.h"
#include "core/plan/examples.h"
#include "core/train/row_spool.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap {

// The processors that this process may use, at least 1.
int UsableProcessors();

// Not thread-safe. Any number of jobs may run at a time: those that wait for others because
// OpenBLAS serves a limited number of threads ask their monitor meanwhile.
class LocalJob {
 public:
  virtual ~LocalJob() = default;
  LocalJob() = default;
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;

  // Adds rows; `known` has what is known of each, in the lists that the job needs (labels), and its
  // examples are not read. The rows are not needed afterwards. Errors have fields as those of the
  // API's calls, and metadata "stream_row" counts from the first row added. After an error the job
  // is unusable. Throws std::bad_alloc.
  virtual absl::Status Add(const ExamplesView& rows, const v1::TrainingExamples& known,
                           BuildMonitor& monitor) = 0;
  // Returns the artifact, or for an evaluation the serialized v1.Evaluation without a version. Call
  // once. Errors: those of the API's call. Throws std::bad_alloc.
  virtual absl::StatusOr<std::string> Finish(BuildMonitor& monitor) = 0;
};

// A kernel that a service computes is refused (KERNEL_SERVICE_NOT_LISTED): only a server asks it.
absl::StatusOr<std::unique_ptr<LocalJob>> BuildLocally(const v1::BuildSpec& spec);
// Trains a head on `features`, or, if spec has a build or tuning, on features that are built from
// the rows; `features` is then null. `space` must outlive the job.
absl::StatusOr<std::unique_ptr<LocalJob>> TrainLocally(std::shared_ptr<const FeatureMap> features,
                                                       const v1::TrainingSpec& spec,
                                                       SpoolSpace& space, int threads);
absl::StatusOr<std::unique_ptr<LocalJob>> EvaluateLocally(
    std::shared_ptr<const FeatureMap> features, const v1::EvaluationSpec& spec);

}  // namespace phimap

#endif  // PHIMAP_CLIENT_LOCAL_LOCAL_JOB_H_
