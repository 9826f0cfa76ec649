#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/check.h"
#include "gtest/gtest.h"
#include "server/observe/log.h"
#include "tests/support/matchers.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

using std::chrono::milliseconds;

std::string DropLine(absl::string_view reason, int64_t count) {
  return absl::StrCat("dropped ", reason, " ", count, "\n");
}

class LogWriterTest : public ::testing::Test {
 protected:
  LogWriterTest() { PHIMAP_CHECK(pipe2(ends_, O_CLOEXEC) == 0); }
  ~LogWriterTest() override {
    CloseReader();
    close(ends_[1]);
  }

  void CloseReader() {
    if (ends_[0] >= 0) close(std::exchange(ends_[0], -1));
  }
  // Returns false at the end of the pipe.
  bool ReadSome() {
    char chunk[4096];
    const ssize_t got = read(ends_[0], chunk, sizeof(chunk));
    if (got > 0) read_.append(chunk, static_cast<size_t>(got));
    return got > 0;
  }
  // Reads until `text` has arrived, and returns everything read so far.
  const std::string& ReadUntil(absl::string_view text) {
    while (!absl::StrContains(read_, text) && ReadSome()) {
    }
    return read_;
  }
  // The log reports dropped lines in lines of its own. Returns the total that the complete lines
  // read so far report.
  int64_t Told(absl::string_view reason) const {
    int64_t told = 0;
    const size_t whole = read_.rfind('\n') + 1;
    for (absl::string_view line : absl::StrSplit(absl::string_view(read_).substr(0, whole), '\n')) {
      int64_t count = 0;
      if (absl::ConsumePrefix(&line, absl::StrCat("dropped ", reason, " ")) &&
          absl::SimpleAtoi(line, &count)) {
        told += count;
      }
    }
    return told;
  }
  // A line of 1,024 bytes.
  static std::string Line(int number) {
    std::string line = absl::StrCat(number, " ");
    line.resize(1023, 'x');
    return line + "\n";
  }
  // Writes lines until one is dropped. At that point the queue is full, and the pipe is full or
  // nearly full. Returns how many lines were accepted.
  int Fill(LogWriter& writer) {
    int lines = 0;
    while (writer.drops().queue_full == 0) writer.Write(Line(lines++));
    return lines - 1;
  }

  int ends_[2];
  std::string read_;
};

TEST_F(LogWriterTest, LinesArriveInTheirOrder) {
  {
    LogWriter writer(ends_[1], DropLine);
    for (int i = 0; i < 50; ++i) writer.Write(absl::StrCat("line ", i, "\n"));
  }
  const std::vector<std::string> lines = absl::StrSplit(ReadUntil("line 49\n"), '\n');
  ASSERT_EQ(lines.size(), 51);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(lines[i], absl::StrCat("line ", i));
}

TEST_F(LogWriterTest, LinesOfManyThreadsDoNotMix) {
  std::optional<LogWriter> writer(std::in_place, ends_[1], DropLine);
  RunTogether(4, [&](int t) {
    for (int i = 0; i < 100; ++i) writer->Write(std::string(99, static_cast<char>('a' + t)) + "\n");
  });
  writer->Write("end\n");
  std::vector<std::string> lines = absl::StrSplit(ReadUntil("end\n"), '\n');
  ASSERT_EQ(lines.size(), 402);
  lines.resize(400);
  for (const std::string& line : lines) EXPECT_EQ(line, std::string(99, line[0]));
}

TEST_F(LogWriterTest, APipeThatNobodyReadsTakesNoMoreMemoryThanItMay) {
  LogWriter writer(ends_[1], DropLine,
                   {.max_queued_bytes = 256 << 10, .end_wait = milliseconds(0)});
  const int taken = Fill(writer);
  // The queue holds 256 lines, and the pipe some more. The capacity of a pipe is normally 64 KiB.
  const int pipe_bytes = fcntl(ends_[1], F_GETPIPE_SZ);
  EXPECT_GE(taken, 256);
  EXPECT_LE(taken, 256 + pipe_bytes / 1024);
}

TEST_F(LogWriterTest, TellsOfDroppedLinesWhenThereIsRoomAgain) {
  LogWriter writer(ends_[1], DropLine, {.max_queued_bytes = 64 << 10});
  Fill(writer);
  for (int i = 0; i < 9; ++i) writer.Write(Line(0));
  // Meanwhile the pipe may have accepted a few more lines, and the first drop may already have been
  // reported.
  const int64_t dropped = writer.drops().queue_full;
  while (Told("queue_full") < dropped && ReadSome()) {
  }
  EXPECT_EQ(Told("queue_full"), dropped);
  // Later lines are written as usual.
  writer.Write("after\n");
  EXPECT_THAT(ReadUntil("after\n"), HasSubstr("after\n"));
}

TEST_F(LogWriterTest, TellsOfLinesDroppedForTheirRateEachOnce) {
  LogWriter writer(ends_[1], DropLine, {.tell_interval = milliseconds(0)});
  for (int i = 0; i < 3; ++i) writer.DropForRate();
  writer.Write("end\n");
  ReadUntil("end\n");
  writer.DropForRate();
  int told = 0;
  // One report may cover several dropped lines.
  while (told < 4) {
    told = 0;
    for (const absl::string_view line : absl::StrSplit(ReadUntil("rate"), '\n')) {
      int count = 0;
      if (std::sscanf(std::string(line).c_str(), "dropped rate %d", &count) == 1) told += count;
    }
    if (told < 4) {
      char byte = 0;
      ASSERT_EQ(read(ends_[0], &byte, 1), 1);
      read_.push_back(byte);
    }
  }
  EXPECT_EQ(told, 4);
  EXPECT_EQ(writer.drops(), (LogDrops{.queue_full = 0, .rate = 4, .write_failed = 0}));
}

// If the destructor did not return, the test would exceed its own time limit.
TEST_F(LogWriterTest, ABlockedPipeHoldsUpTheEndForNoLongerThanItMay) {
  std::optional<LogWriter> writer(std::in_place, ends_[1], DropLine,
                                  LogWriter::Options{.end_wait = milliseconds(50)});
  Fill(*writer);
  const auto begin = std::chrono::steady_clock::now();
  writer.reset();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
}

TEST_F(LogWriterTest, WhatWaitsWhenItEndsIsWrittenOnceThereIsRoom) {
  auto writer = std::make_unique<LogWriter>(
      ends_[1], DropLine,
      LogWriter::Options{.max_queued_bytes = 64 << 10, .end_wait = std::chrono::minutes(1)});
  const int taken = Fill(*writer);
  std::thread reader([this] { ReadUntil("dropped queue_full 1\n"); });
  writer = nullptr;
  reader.join();
  EXPECT_THAT(read_, HasSubstr(absl::StrCat("\n", taken - 1, " ")));
}

TEST_F(LogWriterTest, AReaderThatIsGoneEndsNothingAndIsCounted) {
  std::signal(SIGPIPE, SIG_DFL);
  LogWriter writer(ends_[1], DropLine);
  CloseReader();
  while (writer.drops().write_failed < 3) writer.Write("line\n");
  EXPECT_EQ(writer.drops().rate, 0);
}

}  // namespace
}  // namespace phimap::testing
