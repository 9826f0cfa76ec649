// Phimap in the process of another language: a plain C interface, made for Python's ctypes. Feature
// maps are loaded, built, trained and evaluated here without a server, with its bytes and bits.
//
// Functions with an `error` parameter return 0, or the canonical code of an error, and then give a
// serialized phimap.rpc.Status in `error`: the details that a server would send. Requests and
// results are serialized messages of phimap.v1. No exception leaves a function; where memory runs
// out the code is 8 (RESOURCE_EXHAUSTED).
//
// Thread-safe, except that a job is for one thread at a time and nothing may be used while or after
// it is freed. A process may fork: nothing holds a thread between calls. Pointers must be valid,
// and lengths true; everything behind them is checked.
#ifndef PHIMAP_CLIENT_BINDING_PHIMAP_H_
#define PHIMAP_CLIENT_BINDING_PHIMAP_H_

#include <stddef.h>
#include <stdint.h>

#define PHIMAP_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// Bytes that the library allocated; phimap_bytes_free gives them back. Empty after an error.
typedef struct phimap_bytes {
  char* data;
  int64_t size;
} phimap_bytes;
PHIMAP_EXPORT void phimap_bytes_free(phimap_bytes* bytes);

// Examples, of one of the kinds.
typedef struct phimap_rows {
  int32_t kind;          // 1: dense rows, 2: strings of bytes, 3: texts in UTF-8, 4: sparse rows
  int32_t number_bytes;  // 4 or 8, of each number; not used for strings
  int64_t rows;
  int64_t columns;         // not used for strings
  const void* values;      // rows × columns numbers; or entries numbers; or the strings' bytes
  const int64_t* offsets;  // sparse rows and strings: rows + 1, from 0 to `entries`, never falling
  const int32_t* indices;  // sparse rows: the column of each entry, rising in each row
  int64_t entries;         // sparse rows: entries; strings: their bytes
} phimap_rows;

// Called by long work on the caller's thread, with a phase and the share of the work that is done.
// Any value but PHIMAP_GO_ON cancels the work, which then ends with code 1 (CANCELLED): a language
// whose exception leaves the function returns nothing that can be foreseen.
#define PHIMAP_GO_ON 0x50484D
typedef int32_t (*phimap_progress)(void* context, const char* phase, double fraction);

// Returns the version number of this interface. Libraries with different numbers are incompatible.
PHIMAP_EXPORT int32_t phimap_interface(void);
// Returns a v1.ListCapabilitiesResponse.
PHIMAP_EXPORT int32_t phimap_capabilities(phimap_bytes* capabilities, phimap_bytes* error);
// Returns what the engine and OpenBLAS run on, such as "AVX3, Cooperlake".
PHIMAP_EXPORT const char* phimap_processor(void);

typedef struct phimap_map phimap_map;

// Loads an artifact (core/feature_map/feature_map.h), whose bytes are copied. `kernel_values`:
// whether a remote kernel is accepted, of which rows are then the values with each landmark.
PHIMAP_EXPORT int32_t phimap_map_load(const char* artifact, int64_t artifact_bytes,
                                      int64_t max_bytes, int32_t kernel_values, phimap_map** map,
                                      phimap_bytes* error);
PHIMAP_EXPORT void phimap_map_free(phimap_map* map);
// The artifact's bytes, which live as long as the map.
PHIMAP_EXPORT const char* phimap_map_artifact(const phimap_map* map, int64_t* bytes);
// Returns a v1.Version, without name, number and times.
PHIMAP_EXPORT int32_t phimap_map_describe(const phimap_map* map, phimap_bytes* version,
                                          phimap_bytes* error);
// Checks the artifact again, as when it was loaded. Sets *ran to whether the reference vectors were
// computed and compared; 0 if it has none or this machine computes other last bits.
PHIMAP_EXPORT int32_t phimap_map_verify(const phimap_map* map, int32_t* ran, phimap_bytes* error);

// Maps rows on up to `threads` threads, 0 for one of each processor. `features` gets rows × output
// columns numbers of the serving type.
PHIMAP_EXPORT int32_t phimap_map_transform_dense(const phimap_map* map, const void* values,
                                                 int32_t number_bytes, int64_t rows,
                                                 int64_t columns, void* features, int32_t threads,
                                                 phimap_bytes* error);
// Maps rows of every kind as phimap_map_transform_dense does dense ones. `residuals` and
// `allowances` get a number for each row, if they are not null.
PHIMAP_EXPORT int32_t phimap_map_transform(const phimap_map* map, const phimap_rows* rows,
                                           void* features, double* residuals, double* allowances,
                                           int32_t threads, phimap_bytes* error);
// Answers rows by the head. `request` is a v1.PredictRequest of which the wanted outputs are read;
// `answer` a v1.PredictResponse without a version, whose classes are named once.
PHIMAP_EXPORT int32_t phimap_map_predict(const phimap_map* map, const char* request,
                                         int64_t request_bytes, const phimap_rows* rows,
                                         int32_t threads, phimap_bytes* answer,
                                         phimap_bytes* error);

// Returns the map as an ONNX model (client/local/onnx_model.h), with its features as output, or, if
// `answers` is not 0, with the answers of its head.
PHIMAP_EXPORT int32_t phimap_map_onnx(const phimap_map* map, int32_t answers, phimap_bytes* model,
                                      phimap_bytes* error);

typedef struct phimap_job phimap_job;

// Begin a build of a v1.BuildSpec; a training of a v1.TrainingSpec, of the features of `map`, or,
// where the spec says what to build, without a map; and an evaluation of a v1.EvaluationSpec.
// Names, ids, references and times to live in these messages are not read. `threads` as above. A
// training that builds its features keeps rows in nameless files in `spool_folder`, at most
// `spool_bytes`.
PHIMAP_EXPORT int32_t phimap_job_build(const char* spec, int64_t spec_bytes, int32_t threads,
                                       phimap_job** job, phimap_bytes* error);
PHIMAP_EXPORT int32_t phimap_job_train(const phimap_map* map, const char* spec, int64_t spec_bytes,
                                       const char* spool_folder, int64_t spool_bytes,
                                       int32_t threads, phimap_job** job, phimap_bytes* error);
PHIMAP_EXPORT int32_t phimap_job_evaluate(const phimap_map* map, const char* spec,
                                          int64_t spec_bytes, phimap_job** job,
                                          phimap_bytes* error);
// Adds rows, with what is known of each as a v1.TrainingExamples without its examples. After an
// error the job can only be freed.
PHIMAP_EXPORT int32_t phimap_job_add(phimap_job* job, const phimap_rows* rows, const char* known,
                                     int64_t known_bytes, phimap_progress progress, void* context,
                                     phimap_bytes* error);
// Returns the artifact, or for an evaluation a v1.Evaluation. The job can only be freed afterwards.
// `progress` may be null.
PHIMAP_EXPORT int32_t phimap_job_finish(phimap_job* job, phimap_progress progress, void* context,
                                        phimap_bytes* result, phimap_bytes* error);
PHIMAP_EXPORT void phimap_job_free(phimap_job* job);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // PHIMAP_CLIENT_BINDING_PHIMAP_H_
