// An engine for other languages, without a server: an artifact's bytes in, features out, with the
// bits that phimapd's Transform gives. Plain C, made for ctypes.
//
// Functions return 0, or the canonical code of an error and its message in `error`: a text that
// ends with a zero, cut after error_bytes. Nothing throws. Thread-safe, except for
// phimap_engine_free.
//
// The artifact is decoded as hostile bytes (core/plan/artifact.h); its digest is for the caller to
// check.
#ifndef PHIMAP_CORE_BINDING_ENGINE_BINDING_H_
#define PHIMAP_CORE_BINDING_ENGINE_BINDING_H_

#include <stddef.h>
#include <stdint.h>

#define PHIMAP_EXPORT __attribute__((visibility("default")))

extern "C" {

typedef struct phimap_engine phimap_engine;

// Version of this interface. A caller must refuse a library with another version.
PHIMAP_EXPORT int32_t phimap_engine_interface(void);

// Loads an artifact, which is not needed afterwards. Errors: those of DecodeArtifact and
// Engine::Load; FAILED_PRECONDITION (9) for a mapping whose kernel is remote;
// UNIMPLEMENTED (12) for one of strings; RESOURCE_EXHAUSTED (8) without memory.
PHIMAP_EXPORT int32_t phimap_engine_load(const char* artifact, int64_t artifact_bytes,
                                         phimap_engine** engine, char* error, int64_t error_bytes);
PHIMAP_EXPORT void phimap_engine_free(phimap_engine* engine);

PHIMAP_EXPORT int64_t phimap_engine_input_columns(const phimap_engine* engine);
PHIMAP_EXPORT int64_t phimap_engine_output_columns(const phimap_engine* engine);
// 4 or 8: float32 or float64.
PHIMAP_EXPORT int32_t phimap_engine_feature_bytes(const phimap_engine* engine);

// Maps rows × columns numbers of number_bytes each, 4 or 8, row after row. `features` has room for
// rows × output columns. Errors: those of Engine::CheckTakes and CheckExamples, and OUT_OF_RANGE
// (11) for features that overflow.
PHIMAP_EXPORT int32_t phimap_engine_transform_dense(const phimap_engine* engine, const void* values,
                                                    int32_t number_bytes, int64_t rows,
                                                    int64_t columns, void* features, char* error,
                                                    int64_t error_bytes);
// Maps rows in compressed sparse row form: row i has entries offsets[i] .. offsets[i+1]−1, in the
// order of their columns. `entries` is the length of `indices` and `values`.
PHIMAP_EXPORT int32_t phimap_engine_transform_sparse(const phimap_engine* engine,
                                                     const int64_t* offsets, const int32_t* indices,
                                                     const void* values, int64_t entries,
                                                     int32_t number_bytes, int64_t rows,
                                                     int64_t columns, void* features, char* error,
                                                     int64_t error_bytes);

}  // extern "C"

#endif  // PHIMAP_CORE_BINDING_ENGINE_BINDING_H_
