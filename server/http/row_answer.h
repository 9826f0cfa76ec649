// The rows of an answer as a file: CSV with a header, or a .npy array.
#ifndef PHIMAP_SERVER_HTTP_ROW_ANSWER_H_
#define PHIMAP_SERVER_HTTP_ROW_ANSWER_H_

#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace phimap {

// Whether messages of this type can be written as files: answers of Transform and Predict.
bool IsRowAnswer(const google::protobuf::Descriptor& type);

// Returns the features, with a column each for residuals and their allowances where the answer has
// them (f0, f1, …, residual, residual_allowance); or what was predicted, with the columns of
// `phimap predict` (predicted, score…, probability…, set, low, high, deviation). A float32 is
// printed as the shortest text of its value in float64.
std::string CsvOf(const google::protobuf::Message& answer);

// Returns the same columns as a 2-D array of float32 (features in that type alone) or float64. A
// class is its index. Sets have no column.
std::string NpyOf(const google::protobuf::Message& answer);

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_ROW_ANSWER_H_
