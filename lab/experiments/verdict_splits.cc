#include "lab/experiments/verdict_splits.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/certificate/fidelity.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/blas.h"
#include "core/status/status_macros.h"
#include "lab/built_map.h"
#include "lab/experiments/ridge.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

// The rows of a split. `rest` has the validation rows and then the test rows.
struct SplitRows {
  Matrix<double> stream;
  Matrix<double> train;
  Matrix<double> rest;
  std::vector<int32_t> train_labels;
  std::vector<int32_t> validate_labels;
  std::vector<int32_t> test_labels;
  int32_t classes = 2;

  RidgeLabels labels() const { return {train_labels, validate_labels, test_labels, classes}; }
};

std::vector<int64_t> Range(const std::vector<int64_t>& order, int64_t first, int64_t count) {
  return {order.begin() + first, order.begin() + first + count};
}

SplitRows RowsOf(const VerdictData& data, int64_t split) {
  const int64_t n = data.examples.rows.rows();
  const std::vector<int64_t> order = ShuffledNumbers(n, static_cast<uint64_t>(1000 + split));
  const std::vector<int64_t> all = ShuffledNumbers(n, static_cast<uint64_t>(5000 + split));
  const int64_t rest = data.validate + data.test;
  Examples train = Subset(data.examples, Range(order, 0, data.train));
  Examples others = Subset(data.examples, Range(order, n - rest, rest));
  SplitRows rows;
  rows.stream =
      Subset(data.examples, data.streams_all ? all : Range(order, 0, data.stream)).rows.Clone();
  rows.train = std::move(train.rows);
  rows.rest = std::move(others.rows);
  rows.train_labels = std::move(train.labels);
  rows.validate_labels.assign(others.labels.begin(), others.labels.begin() + data.validate);
  rows.test_labels.assign(others.labels.begin() + data.validate, others.labels.end());
  rows.classes = data.examples.classes;
  return rows;
}

absl::StatusOr<double> ExactError(const SplitRows& rows, const std::string& kernel) {
  PHIMAP_ASSIGN_OR_RETURN(const KernelExpression expression, KernelExpression::Parse(kernel));
  const KernelProgram program = KernelProgram::Compile(expression);
  Matrix<double> gram = Matrix<double>::Uninit(rows.train.rows(), rows.train.rows());
  PHIMAP_RETURN_IF_ERROR(KernelGram(program, rows.train.view(), gram.view(), NeverStop));
  MirrorLowerTriangle(gram.view());
  Matrix<double> rest = Matrix<double>::Uninit(rows.rest.rows(), rows.train.rows());
  KernelBlock(program, rows.rest.view(), SquaredNorms(rows.rest.view()), rows.train.view(),
              SquaredNorms(rows.train.view()), rest.view());
  return RidgeErrorOfGram(std::move(gram), std::move(rest), rows.labels());
}

VerdictMeasures MeasuresOf(const Certificate& certificate) {
  const Fidelity& fidelity = *certificate.fidelity;
  VerdictMeasures measures{
      .gram_error = fidelity.gram_error,
      .centred_gram_error = fidelity.centred_gram_error,
      .self_error_median = fidelity.self_error_median,
      .self_error_quantile_95 = fidelity.self_error_quantile_95,
      .few_rows_carry =
          certificate.aim == Aim::kInnerProducts && FewRowsCarry(certificate) ? 1.0 : 0.0};
  if (!fidelity.smoothers.empty()) {
    measures.smoother_1 = fidelity.smoothers[0].distance;
    measures.smoother_2 = fidelity.smoothers[1].distance;
    measures.smoother_4 = fidelity.smoothers[2].distance;
    measures.left_out = *certificate.left_out_distance;
  }
  return measures;
}

// The numbers of a split, in the order of a line of the file.
std::vector<double*> NumbersOf(VerdictSplit& split) {
  VerdictMeasures& m = split.measures;
  return {&split.exact_error,    &split.error,         &m.smoother_1,
          &m.smoother_2,         &m.smoother_4,        &m.gram_error,
          &m.centred_gram_error, &m.self_error_median, &m.self_error_quantile_95,
          &m.few_rows_carry,     &m.left_out};
}

// What is known of all cells, shared by the threads. Guarded by `mutex`.
struct Progress {
  std::mutex mutex;
  std::map<std::string, CellSplits> splits;
  // Errors on the exact kernel, by data set and kernel and then by split.
  std::map<std::string, std::map<int64_t, double>> exact;
  std::ofstream file;
  absl::Status status;
};

std::string ExactKey(const std::string& data, const std::string& kernel) {
  return absl::StrCat(data, "|", kernel);
}

// Reads the splits of earlier runs. A line that was cut off is ignored.
void ReadSplits(const std::string& name, Progress& progress) {
  std::ifstream in(name);
  std::string line;
  while (std::getline(in, line)) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    VerdictSplit split;
    const std::vector<double*> numbers = NumbersOf(split);
    int64_t number = 0;
    if (fields.size() != numbers.size() + 3 || fields.back() != "." ||
        !absl::SimpleAtoi(fields[1], &number)) {
      continue;
    }
    bool read = true;
    for (size_t i = 0; i < numbers.size(); ++i) {
      read = read && absl::SimpleAtod(fields[i + 2], numbers[i]);
    }
    if (!read) continue;
    progress.splits[fields[0]][number] = split;
    const std::vector<std::string> key = absl::StrSplit(fields[0], '|');
    if (key.size() == 3) progress.exact[ExactKey(key[0], key[1])][number] = split.exact_error;
  }
}

void Keep(const VerdictCell& cell, int64_t number, VerdictSplit split, Progress& progress) {
  const std::lock_guard<std::mutex> lock(progress.mutex);
  progress.splits[cell.Key()][number] = split;
  progress.exact[ExactKey(cell.data, cell.kernel)][number] = split.exact_error;
  if (!progress.file.is_open()) return;
  std::string line = absl::StrCat(cell.Key(), "\t", number);
  for (const double* value : NumbersOf(split)) absl::StrAppendFormat(&line, "\t%.9g", *value);
  progress.file << line << "\t.\n" << std::flush;
}

absl::Status MeasureSplit(const VerdictData& data, const VerdictCell& cell, int64_t number,
                          Progress& progress) {
  const SplitRows rows = RowsOf(data, number);
  VerdictSplit split{.exact_error = -1};
  {
    const std::lock_guard<std::mutex> lock(progress.mutex);
    const auto& known = progress.exact[ExactKey(cell.data, cell.kernel)];
    if (const auto found = known.find(number); found != known.end()) {
      split.exact_error = found->second;
    }
  }
  if (split.exact_error < 0) {
    PHIMAP_ASSIGN_OR_RETURN(split.exact_error, ExactError(rows, cell.kernel));
  }
  PHIMAP_ASSIGN_OR_RETURN(const BuiltMap map,
                          BuiltMap::Build({.mapping = cell.mapping, .kernel = cell.kernel},
                                          rows.stream.view(), static_cast<uint64_t>(1 + number)));
  PHIMAP_ASSIGN_OR_RETURN(Matrix<double> train, map.Map(rows.train.view()));
  PHIMAP_ASSIGN_OR_RETURN(Matrix<double> rest, map.Map(rows.rest.view()));
  split.error = RidgeErrorOfFeatures(std::move(train), std::move(rest), rows.labels());
  split.measures = MeasuresOf(map.certificate());
  Keep(cell, number, split, progress);
  return absl::OkStatus();
}

// Whether the rule asks for split `number` of a cell.
bool IsWanted(const VerdictCell& cell, int64_t number, const SplitRule& rule, Progress& progress) {
  const std::lock_guard<std::mutex> lock(progress.mutex);
  if (!progress.status.ok()) return false;
  const CellSplits& splits = progress.splits[cell.Key()];
  if (splits.count(number) > 0 || number >= rule.most) return false;
  return number < rule.least || LossOf(splits).half_width > rule.half_width;
}

}  // namespace

CellLoss LossOf(const CellSplits& splits) {
  std::vector<double> losses;
  for (const auto& [number, split] : splits)
    losses.push_back(100 * (split.error - split.exact_error));
  if (losses.empty()) return {0, std::numeric_limits<double>::infinity()};
  const double mean = Mean(losses);
  if (losses.size() < 2) return {mean, std::numeric_limits<double>::infinity()};
  // The .975 quantile of Student's distribution, to a hundredth from 3 degrees of freedom on.
  const auto degrees = static_cast<double>(losses.size() - 1);
  const double quantile = 1.96 + 2.37 / degrees + 2.82 / std::pow(degrees, 2) +
                          2.55 / std::pow(degrees, 3) + 3.0 / std::pow(degrees, 4);
  return {mean, quantile * StandardError(losses)};
}

absl::StatusOr<std::map<std::string, CellSplits>> MeasureCells(
    const std::vector<VerdictData>& data, const std::vector<VerdictCell>& cells,
    const SplitRule& rule, const std::string& file) {
  UseOneBlasThread();
  Progress progress;
  if (!file.empty()) {
    ReadSplits(file, progress);
    progress.file.open(file, std::ios::app);
    if (!progress.file) return absl::UnavailableError(absl::StrCat(file, " cannot be written"));
  }
  std::map<std::string, const VerdictData*> by_name;
  for (const VerdictData& one : data) by_name[one.name] = &one;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < cells.size(); i = next++) {
      for (int64_t number = 0; number < rule.most; ++number) {
        if (!IsWanted(cells[i], number, rule, progress)) continue;
        const absl::Status status =
            MeasureSplit(*by_name[cells[i].data], cells[i], number, progress);
        if (status.ok()) continue;
        const std::lock_guard<std::mutex> lock(progress.mutex);
        progress.status =
            absl::Status(status.code(), absl::StrCat(cells[i].Key(), ": ", status.message()));
        return;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1U, std::thread::hardware_concurrency()); ++t) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) thread.join();
  PHIMAP_RETURN_IF_ERROR(progress.status);
  return std::move(progress.splits);
}

}  // namespace phimap::lab
