#include "server/transform/planned_answer.h"

#include <cstring>
#include <optional>
#include <utility>

#include "core/status/check.h"
#include "core/thread/steady_time.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace phimap {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

uint32_t Tag(int number) {
  return WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// Measures the time from the creation of the message until it is sent.
class TimedMessage final : public FramedMessage {
 public:
  TimedMessage(size_t size, RequestMemory::Charge charge, const TransformMetrics& metrics)
      : FramedMessage(size, std::move(charge)), metrics_(metrics) {}
  ~TimedMessage() override {
    metrics_.answer_seconds->Observe(absl::ToDoubleSeconds(SteadyNow() - made_));
  }

 private:
  const TransformMetrics& metrics_;
  const absl::Time made_ = SteadyNow();
};

}  // namespace

void PlannedAnswer::AddBytes(absl::string_view bytes) {
  literals_.append(bytes.data(), bytes.size());
  size_ += bytes.size();
}

size_t PlannedAnswer::FieldHeadBytes(int number, size_t size) {
  return CodedOutputStream::VarintSize32(Tag(number)) + CodedOutputStream::VarintSize64(size);
}

void PlannedAnswer::AddFieldHead(int number, size_t size) {
  uint8_t head[20];
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(Tag(number), head);
  end = CodedOutputStream::WriteVarint64ToArray(size, end);
  AddBytes({reinterpret_cast<char*>(head), static_cast<size_t>(end - head)});
}

int PlannedAnswer::AddField(int number, size_t size) {
  AddFieldHead(number, size);
  parts_.push_back({literals_.size(), size});
  size_ += size;
  return static_cast<int>(parts_.size()) - 1;
}

absl::Status PlannedAnswer::Charge(RequestMemory& memory, const CallerPointer& caller) {
  std::optional<RequestMemory::Charge> charge = memory.TakeForAnswer(caller, bytes());
  if (!charge.has_value()) return memory.Full(caller, "the answer", bytes());
  charge_ = *std::move(charge);
  return absl::OkStatus();
}

bool PlannedAnswer::ChargeOrWait(RequestMemory& memory, const CallerPointer& caller,
                                 RequestMemory::Granted granted, RequestMemory::Waiting& waiting) {
  std::optional<RequestMemory::Charge> charge =
      memory.TakeForAnswerOrWait(caller, bytes(), std::move(granted), waiting);
  if (!charge.has_value()) return false;
  charge_ = *std::move(charge);
  return true;
}

void PlannedAnswer::Allocate(const TransformMetrics& metrics) {
  message_ = std::make_shared<TimedMessage>(size_, std::move(charge_), metrics);
  char* out = message_->message();
  size_t begin = 0;
  for (const Part& part : parts_) {
    std::memcpy(out, literals_.data() + begin, part.literal_end - begin);
    out += part.literal_end - begin + part.field_size;
    begin = part.literal_end;
  }
  std::memcpy(out, literals_.data() + begin, literals_.size() - begin);
}

void PlannedAnswer::Write(const google::protobuf::MessageLite& response,
                          const TransformMetrics& metrics) {
  const size_t size = response.ByteSizeLong();
  message_ = std::make_shared<TimedMessage>(size, std::move(charge_), metrics);
  response.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(message_->message()));
}

char* PlannedAnswer::field(int place) const {
  PHIMAP_CHECK(message_ != nullptr);
  char* out = message_->message();
  size_t fields = 0;
  for (int i = 0; i < place; ++i) fields += parts_[static_cast<size_t>(i)].field_size;
  return out + parts_[static_cast<size_t>(place)].literal_end + fields;
}

}  // namespace phimap
