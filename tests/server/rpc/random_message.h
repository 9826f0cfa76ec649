// Messages of any type with random contents.
#ifndef PHIMAP_TESTS_SERVER_RPC_RANDOM_MESSAGE_H_
#define PHIMAP_TESTS_SERVER_RPC_RANDOM_MESSAGE_H_

#include <random>
#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace phimap::testing {

// Sets fields at random, so that fields of all kinds occur in all combinations.
class RandomMessage {
 public:
  explicit RandomMessage(int seed) : random_(seed) {}

  void Fill(google::protobuf::Message& message, int depth) {
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      if (depth == 0 && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) continue;
      for (int times = Below(field.is_repeated() ? 20 : 2); times > 0; --times) {
        Set(message, field, depth);
      }
    }
  }

 private:
  using FieldDescriptor = google::protobuf::FieldDescriptor;

  int Below(int limit) { return static_cast<int>(random_() % limit); }

  void Set(google::protobuf::Message& message, const FieldDescriptor& field, int depth) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    const bool many = field.is_repeated();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(*(many ? reflection.AddMessage(&message, &field)
                           : reflection.MutableMessage(&message, &field)),
                    depth - 1);
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text(Below(60), static_cast<char>('a' + Below(26)));
        return many ? reflection.AddString(&message, &field, text)
                    : reflection.SetString(&message, &field, text);
      }
      case FieldDescriptor::CPPTYPE_BOOL:
      case FieldDescriptor::CPPTYPE_INT32:
      case FieldDescriptor::CPPTYPE_UINT32:
      case FieldDescriptor::CPPTYPE_ENUM:
      case FieldDescriptor::CPPTYPE_FLOAT:
      case FieldDescriptor::CPPTYPE_INT64:
      case FieldDescriptor::CPPTYPE_UINT64:
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return SetNumber(reflection, message, field);
    }
  }

  void SetNumber(const google::protobuf::Reflection& reflection, google::protobuf::Message& message,
                 const FieldDescriptor& field) {
    const bool many = field.is_repeated();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return many ? reflection.AddInt64(&message, &field, Below(1'000))
                    : reflection.SetInt64(&message, &field, Below(1'000));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return many ? reflection.AddDouble(&message, &field, 0.5)
                    : reflection.SetDouble(&message, &field, 0.5);
      case FieldDescriptor::CPPTYPE_BOOL:
        return many ? reflection.AddBool(&message, &field, true)
                    : reflection.SetBool(&message, &field, true);
      case FieldDescriptor::CPPTYPE_INT32:
        return many ? reflection.AddInt32(&message, &field, -1)
                    : reflection.SetInt32(&message, &field, -1);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return many ? reflection.AddFloat(&message, &field, 0.5f)
                    : reflection.SetFloat(&message, &field, 0.5f);
      case FieldDescriptor::CPPTYPE_UINT32:
        return many ? reflection.AddUInt32(&message, &field, Below(1'000))
                    : reflection.SetUInt32(&message, &field, Below(1'000));
      case FieldDescriptor::CPPTYPE_UINT64:
        return many ? reflection.AddUInt64(&message, &field, Below(1'000))
                    : reflection.SetUInt64(&message, &field, Below(1'000));
      case FieldDescriptor::CPPTYPE_ENUM:
        return many ? reflection.AddEnumValue(&message, &field, 1)
                    : reflection.SetEnumValue(&message, &field, 1);
      case FieldDescriptor::CPPTYPE_STRING:
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return;
    }
  }

  std::mt19937 random_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_RPC_RANDOM_MESSAGE_H_
