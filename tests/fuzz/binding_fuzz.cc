// Calls the plain C interface (client/binding/phimap.h) with what callers of other languages may
// pass: damaged artifacts whose checksums are right, arbitrary specs, and rows of every kind with
// arbitrary offsets and indices. No call may abort or throw, and each answers with 0 or with an
// error that has details.
//
// The first byte of an input chooses what the others are: 0, changes of an artifact; 1 and 2, a
// build and a training with the rest as the spec; 3, rows for each map; 4, a request for a
// prediction; 5, bytes that are called an artifact.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "client/binding/phimap.h"
#include "core/digest/crc32c.h"
#include "core/status/check.h"
#include "phimap/rpc/error_details.pb.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"

namespace {

constexpr int64_t kRows = 60;
constexpr int64_t kColumns = 3;
// Bytes that a map may take. Enough for all that are built here.
constexpr int64_t kMostBytes = int64_t{64} << 20;

// Bytes of the library, and the code that came with them.
class Answer {
 public:
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() {
    phimap_bytes_free(&result_);
    phimap_bytes_free(&error_);
  }
  phimap_bytes* result() { return &result_; }
  phimap_bytes* error() { return &error_; }
  std::string text() const { return {result_.data, static_cast<size_t>(result_.size)}; }
  // Checks that the code is 0, or comes with its details.
  bool Took(int32_t code) const {
    if (code == 0) return true;
    phimap::rpc::Status status;
    PHIMAP_CHECK(status.ParseFromArray(error_.data, static_cast<int>(error_.size)));
    PHIMAP_CHECK(status.code() == code && code > 0 && code <= 16 && !status.message().empty());
    return false;
  }

 private:
  phimap_bytes result_ = {nullptr, 0};
  phimap_bytes error_ = {nullptr, 0};
};

std::vector<double> SomeRows() {
  std::vector<double> values;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    values.push_back(std::sin(static_cast<double>(i * i % 1009)));
  }
  return values;
}

phimap_rows Dense(const std::vector<double>& values) {
  return {.kind = 1,
          .number_bytes = 8,
          .rows = kRows,
          .columns = kColumns,
          .values = values.data(),
          .offsets = nullptr,
          .indices = nullptr,
          .entries = 0};
}

std::string Labels() {
  phimap::v1::TrainingExamples known;
  for (int64_t i = 0; i < kRows; ++i) known.add_labels(i % 2 == 0 ? "even" : "odd");
  return known.SerializeAsString();
}

// Ends a job over SomeRows. Returns what it made, "" after an error.
std::string RunJob(phimap_job* job, const std::string& known) {
  static const std::vector<double> values = SomeRows();
  const phimap_rows rows = Dense(values);
  Answer added;
  Answer finished;
  std::string made;
  if (added.Took(phimap_job_add(job, &rows, known.data(), static_cast<int64_t>(known.size()),
                                nullptr, nullptr, added.error())) &&
      finished.Took(
          phimap_job_finish(job, nullptr, nullptr, finished.result(), finished.error()))) {
    made = finished.text();
  }
  phimap_job_free(job);
  return made;
}

std::string Build(const std::string& spec) {
  phimap_job* job = nullptr;
  Answer begun;
  if (!begun.Took(
          phimap_job_build(spec.data(), static_cast<int64_t>(spec.size()), 1, &job, begun.error())))
    return "";
  return RunJob(job, "");
}

std::string Train(const std::string& spec) {
  phimap_job* job = nullptr;
  Answer begun;
  if (!begun.Took(phimap_job_train(nullptr, spec.data(), static_cast<int64_t>(spec.size()), "/tmp",
                                   kMostBytes, 1, &job, begun.error()))) {
    return "";
  }
  return RunJob(job, Labels());
}

// Artifacts that are changed, and their maps.
struct Known {
  std::string artifact;
  phimap_map* map = nullptr;
};

const std::vector<Known>& KnownMaps() {
  static const std::vector<Known>& known = *[] {
    auto* const maps = new std::vector<Known>;
    for (const char* const spec :
         {"f2(landmarks=12)", "f3(landmarks=12, dimensions=5)", "fourier(dimensions=6)",
          "kpca(landmarks=12, dimensions=4)", "polynomial(dimensions=10)"}) {
      phimap::v1::BuildSpec message;
      message.set_spec(spec);
      message.set_kernel(std::strncmp(spec, "poly", 4) == 0 ? "poly(degree=2, coef0=1)"
                                                            : "rbf(gamma=0.5)");
      message.set_standardize(true);
      maps->push_back({Build(message.SerializeAsString()), nullptr});
    }
    phimap::v1::TrainingSpec training;
    training.mutable_build()->set_spec("f2(landmarks=12)");
    training.mutable_build()->set_kernel("rbf(gamma=0.5)");
    maps->push_back({Train(training.SerializeAsString()), nullptr});
    for (Known& one : *maps) {
      Answer loaded;
      PHIMAP_CHECK(loaded.Took(phimap_map_load(one.artifact.data(),
                                               static_cast<int64_t>(one.artifact.size()),
                                               kMostBytes, 0, &one.map, loaded.error())));
    }
    return maps;
  }();
  return known;
}

phimap::v1::Version Described(const phimap_map* map) {
  Answer described;
  PHIMAP_CHECK(described.Took(phimap_map_describe(map, described.result(), described.error())));
  phimap::v1::Version version;
  PHIMAP_CHECK(version.ParseFromString(described.text()));
  return version;
}

// No byte more than the features of `rows` rows take, so that a sanitizer sees what is written
// beyond them.
size_t BytesOfFeatures(const phimap::v1::Version& version, int64_t rows) {
  const int64_t number = version.serving_type() == phimap::v1::SERVING_TYPE_FLOAT64 ? 8 : 4;
  return static_cast<size_t>(std::max<int64_t>(rows, 0) * version.output_columns() * number);
}

// Everything that a map that was loaded may be asked.
void Use(const phimap_map* map) {
  const phimap::v1::Version version = Described(map);
  int32_t ran = 0;
  Answer verified;
  verified.Took(phimap_map_verify(map, &ran, verified.error()));
  Answer exported;
  exported.Took(phimap_map_onnx(map, 0, exported.result(), exported.error()));
  static const std::vector<double> values = SomeRows();
  const phimap_rows rows = Dense(values);
  std::vector<char> features(BytesOfFeatures(version, kRows));
  Answer mapped;
  mapped.Took(
      phimap_map_transform(map, &rows, features.data(), nullptr, nullptr, 1, mapped.error()));
  Answer predicted;
  predicted.Took(phimap_map_predict(map, "", 0, &rows, 1, predicted.result(), predicted.error()));
}

void Load(const std::string& artifact) {
  phimap_map* map = nullptr;
  Answer loaded;
  if (!loaded.Took(phimap_map_load(artifact.data(), static_cast<int64_t>(artifact.size()),
                                   kMostBytes, 1, &map, loaded.error()))) {
    return;
  }
  Use(map);
  phimap_map_free(map);
}

// The layout of an artifact (docs/formats.md).
constexpr size_t kCountAt = 20;
constexpr size_t kHeaderCrcAt = 28;
constexpr size_t kTableAt = 32;
constexpr size_t kEntryBytes = 24;

template <typename T>
T NumberAt(const std::string& bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(T));
  return number;
}

void PutCrc(std::string& bytes, size_t at, absl::string_view of) {
  const uint32_t crc = phimap::Crc32c(of);
  std::memcpy(bytes.data() + at, &crc, sizeof(crc));
}

// Makes the checksums right again, so that the changes reach the code behind them.
void Reseal(std::string& bytes) {
  const auto sections = NumberAt<uint32_t>(bytes, kCountAt);
  const size_t end = kTableAt + size_t{sections} * kEntryBytes;
  if (sections > 16 || end > bytes.size()) return;
  for (size_t entry = kTableAt; entry < end; entry += kEntryBytes) {
    const auto offset = NumberAt<uint64_t>(bytes, entry + 8);
    const auto size = NumberAt<uint64_t>(bytes, entry + 16);
    if (offset > bytes.size() || size > bytes.size() - offset) continue;
    PutCrc(bytes, entry + 4, absl::string_view(bytes).substr(offset, size));
  }
  PutCrc(bytes, kHeaderCrcAt,
         bytes.substr(0, kHeaderCrcAt) + bytes.substr(kTableAt, end - kTableAt));
}

void LoadChanged(const uint8_t* data, size_t size) {
  if (size < 4) return;
  std::string artifact = KnownMaps()[data[0] % KnownMaps().size()].artifact;
  for (size_t at = 1; at + 3 <= size && at < 3 * 32; at += 3) {
    const size_t place = (size_t{data[at]} << 8 | data[at + 1]) % artifact.size();
    artifact[place] = static_cast<char>(data[at + 2]);
  }
  Reseal(artifact);
  Load(artifact);
}

// Rows of a kind and shape that the input says, within memory that the input fills.
void MapRows(const uint8_t* data, size_t size) {
  if (size < 8) return;
  phimap_rows rows = {.kind = static_cast<int8_t>(data[0]),
                      .number_bytes = static_cast<int8_t>(data[1]),
                      .rows = static_cast<int8_t>(data[2]),
                      .columns = static_cast<int8_t>(data[3]),
                      .values = nullptr,
                      .offsets = nullptr,
                      .indices = nullptr,
                      .entries = static_cast<int8_t>(data[4])};
  const uint8_t* const content = data + 5;
  const size_t left = size - 5;
  // As many numbers as the lengths say: lengths are true, what they count is not.
  const auto count = [](int64_t number) {
    return static_cast<size_t>(std::clamp<int64_t>(number, 0, 128));
  };
  const size_t dense = count(rows.rows) * count(rows.columns) + count(rows.entries);
  std::vector<double> values(dense + 1);
  std::vector<int64_t> offsets(count(rows.rows) + 1);
  std::vector<int32_t> indices(count(rows.entries) + 1);
  std::memcpy(values.data(), content, std::min(left, values.size() * sizeof(double)));
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<int8_t>(content[i % left]);
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = static_cast<int8_t>(content[left - 1 - i % left]);
  // Half of the inputs have offsets that a caller would pass.
  if (content[0] % 2 == 0) {
    for (size_t i = 0; i < offsets.size(); ++i) {
      offsets[i] = std::min<int64_t>(static_cast<int64_t>(i), std::max<int64_t>(rows.entries, 0));
    }
    offsets.back() = std::max<int64_t>(rows.entries, 0);
  }
  rows.values = values.data();
  rows.offsets = offsets.data();
  rows.indices = indices.data();
  for (const Known& known : KnownMaps()) {
    std::vector<char> features(BytesOfFeatures(Described(known.map), rows.rows));
    std::vector<double> residuals(count(rows.rows));
    std::vector<double> allowances(count(rows.rows));
    Answer mapped;
    mapped.Took(phimap_map_transform(known.map, &rows, features.data(), residuals.data(),
                                     allowances.data(), 1, mapped.error()));
    Answer plain;
    plain.Took(phimap_map_transform(known.map, &rows, features.data(), nullptr, nullptr, 1,
                                    plain.error()));
  }
  phimap::v1::BuildSpec spec;
  spec.set_spec("f1(landmarks=1)");
  spec.set_kernel(rows.kind == 2 || rows.kind == 3 ? "spectrum(n=2)" : "linear()");
  const std::string text = spec.SerializeAsString();
  phimap_job* job = nullptr;
  Answer begun;
  if (!begun.Took(
          phimap_job_build(text.data(), static_cast<int64_t>(text.size()), 1, &job, begun.error())))
    return;
  Answer added;
  Answer finished;
  if (added.Took(phimap_job_add(job, &rows, "", 0, nullptr, nullptr, added.error()))) {
    finished.Took(phimap_job_finish(job, nullptr, nullptr, finished.result(), finished.error()));
  }
  phimap_job_free(job);
}

void Predict(const std::string& request) {
  static const std::vector<double> values = SomeRows();
  const phimap_rows rows = Dense(values);
  for (const Known& known : KnownMaps()) {
    Answer answer;
    answer.Took(phimap_map_predict(known.map, request.data(), static_cast<int64_t>(request.size()),
                                   &rows, 1, answer.result(), answer.error()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      LoadChanged(data + 1, size - 1);
      break;
    case 1:
      if (const std::string artifact = Build(rest); !artifact.empty()) Load(artifact);
      break;
    case 2:
      if (const std::string artifact = Train(rest); !artifact.empty()) Load(artifact);
      break;
    case 3:
      MapRows(data + 1, size - 1);
      break;
    case 4:
      Predict(rest);
      break;
    default:
      Load(rest);
      break;
  }
  return 0;
}
