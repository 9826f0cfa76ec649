// An engine for other languages, without a server: it takes an artifact's bytes and rows, and
// returns features with the same bits as phimapd's Transform. Plain C, made for ctypes.
//
// Functions with an `error` parameter return 0, or the canonical code of an error, whose message
// they write to `error`: a text that ends with a zero byte, cut to error_bytes. Nothing throws.
// Thread-safe, except for phimap_engine_free.
//
// The artifact is decoded as untrusted bytes (core/plan/artifact.h). Its digest is not checked;
// that is up to the caller.
#ifndef PHIMAP_CORE_BINDING_ENGINE_BINDING_H_
#define PHIMAP_CORE_BINDING_ENGINE_BINDING_H_

#include <stddef.h>
#include <stdint.h>

#define PHIMAP_EXPORT __attribute__((visibility("default")))

extern "C" {

typedef struct phimap_engine phimap_engine;

// Returns the version number of this interface. Libraries with different numbers are incompatible.
PHIMAP_EXPORT int32_t phimap_engine_interface(void);

// Loads an artifact, whose bytes are not needed afterwards. Errors: those of DecodeArtifact and
// Engine::Load; FAILED_PRECONDITION (9) if the mapping's kernel is remote; UNIMPLEMENTED (12) if
// the mapping takes strings; RESOURCE_EXHAUSTED (8) if memory runs out.
PHIMAP_EXPORT int32_t phimap_engine_load(const char* artifact, int64_t artifact_bytes,
                                         phimap_engine** engine, char* error, int64_t error_bytes);
PHIMAP_EXPORT void phimap_engine_free(phimap_engine* engine);

PHIMAP_EXPORT int64_t phimap_engine_input_columns(const phimap_engine* engine);
PHIMAP_EXPORT int64_t phimap_engine_output_columns(const phimap_engine* engine);
// Returns 4 for float32 features, 8 for float64.
PHIMAP_EXPORT int32_t phimap_engine_feature_bytes(const phimap_engine* engine);

// Maps rows × columns numbers of number_bytes (4 or 8) each, row by row. `features` must hold rows
// × output columns numbers. Errors: those of Engine::CheckTakes and CheckExamples, INVALID_ARGUMENT
// (3) for other invalid counts, and OUT_OF_RANGE (11) for features that overflow.
PHIMAP_EXPORT int32_t phimap_engine_transform_dense(const phimap_engine* engine, const void* values,
                                                    int32_t number_bytes, int64_t rows,
                                                    int64_t columns, void* features, char* error,
                                                    int64_t error_bytes);
// Maps rows in compressed sparse row form: row i has entries offsets[i] … offsets[i+1] − 1, with
// rising columns. `entries` is the length of `indices` and of `values`.
PHIMAP_EXPORT int32_t phimap_engine_transform_sparse(const phimap_engine* engine,
                                                     const int64_t* offsets, const int32_t* indices,
                                                     const void* values, int64_t entries,
                                                     int32_t number_bytes, int64_t rows,
                                                     int64_t columns, void* features, char* error,
                                                     int64_t error_bytes);

}  // extern "C"

#endif  // PHIMAP_CORE_BINDING_ENGINE_BINDING_H_
