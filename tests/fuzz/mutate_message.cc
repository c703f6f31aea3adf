#include "tests/fuzz/mutate_message.h"

#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

namespace msrt::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Random = std::mt19937_64;

constexpr size_t kMaxMessages = 4096;

size_t Below(Random& random, size_t count) { return count == 0 ? 0 : random() % count; }
bool OneIn(Random& random, size_t count) { return Below(random, count) == 0; }

// Every message of the tree, with its strings: names that have a meaning in the model.
struct Tree {
  std::vector<Message*> messages;
  std::vector<std::string> words;
  std::span<const std::string> known;  // words of the format
};

void Collect(Message* message, Tree* tree) {
  if (tree->messages.size() >= kMaxMessages) return;
  tree->messages.push_back(message);
  const Reflection& r = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  r.ListFields(*message, &fields);
  for (const FieldDescriptor* f : fields) {
    if (f->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!f->is_repeated()) Collect(r.MutableMessage(message, f), tree);
      for (int i = 0; f->is_repeated() && i < r.FieldSize(*message, f); ++i)
        Collect(r.MutableRepeatedMessage(message, f, i), tree);
    } else if (f->type() == FieldDescriptor::TYPE_STRING) {
      if (!f->is_repeated()) tree->words.push_back(r.GetString(*message, f));
      for (int i = 0; f->is_repeated() && i < r.FieldSize(*message, f); ++i)
        tree->words.push_back(r.GetRepeatedString(*message, f, i));
    }
  }
}

std::string OtherText(Random& random, const std::string& old, const Tree& tree) {
  switch (Below(random, 6)) {
    case 0: {
      std::string text = old.empty() ? "x" : old;
      text[Below(random, text.size())] = static_cast<char>(random());
      return text;
    }
    case 1:
      return old.substr(0, Below(random, old.size() + 1));
    case 2:
      return tree.known.empty() ? old : tree.known[Below(random, tree.known.size())];
    default:
      return tree.words.empty() ? old : tree.words[Below(random, tree.words.size())];
  }
}

int64_t OtherNumber(Random& random, int64_t old) {
  constexpr int64_t kEdges[] = {0,
                                1,
                                2,
                                3,
                                4,
                                8,
                                64,
                                255,
                                65536,
                                INT32_MAX,
                                int64_t{INT32_MAX} + 1,
                                int64_t{1} << 32,
                                int64_t{1} << 40,
                                INT64_MAX,
                                -1,
                                -2,
                                -3,
                                -8,
                                INT32_MIN,
                                INT64_MIN};
  switch (Below(random, 5)) {
    case 0:
      return kEdges[Below(random, std::size(kEdges))];
    case 1:
      return static_cast<int64_t>(static_cast<uint64_t>(old) + random() % 5 - 2);
    case 2:
      return static_cast<int64_t>(static_cast<uint64_t>(old) ^ (uint64_t{1} << Below(random, 64)));
    default:
      return static_cast<int64_t>(Below(random, 24)) - 1;
  }
}

double OtherFloat(Random& random, double old) {
  constexpr double kEdges[] = {0, -0.0, 1, -1, 0.5, 1e-30, 1e30, -1e300, HUGE_VAL, -HUGE_VAL, NAN};
  return OneIn(random, 3) ? old * 2 : kEdges[Below(random, std::size(kEdges))];
}

int OtherChoice(Random& random, const google::protobuf::EnumDescriptor& choices, int old) {
  if (OneIn(random, 8)) return old + 1;
  return choices.value(static_cast<int>(Below(random, static_cast<size_t>(choices.value_count()))))
      ->number();
}

// Sets the field, or its element `at` (at the end: a new one).
void EditScalar(Random& random, Message* m, const FieldDescriptor* f, int at, const Tree& tree) {
  const Reflection& r = *m->GetReflection();
  const bool list = f->is_repeated(), more = list && at == r.FieldSize(*m, f);
#define MSRT_EDIT(Kind, Type, other)                                                             \
  {                                                                                              \
    const Type old = more ? Type{} : list ? r.GetRepeated##Kind(*m, f, at) : r.Get##Kind(*m, f); \
    const Type value = static_cast<Type>(other);                                                 \
    return more   ? r.Add##Kind(m, f, value)                                                     \
           : list ? r.SetRepeated##Kind(m, f, at, value)                                         \
                  : r.Set##Kind(m, f, value);                                                    \
  }
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      MSRT_EDIT(Int32, int32_t, OtherNumber(random, old));
    case FieldDescriptor::CPPTYPE_INT64:
      MSRT_EDIT(Int64, int64_t, OtherNumber(random, old));
    case FieldDescriptor::CPPTYPE_UINT64:
      MSRT_EDIT(UInt64, uint64_t, OtherNumber(random, static_cast<int64_t>(old)));
    case FieldDescriptor::CPPTYPE_FLOAT:
      MSRT_EDIT(Float, float, std::clamp(OtherFloat(random, old), -3e38, 3e38));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      MSRT_EDIT(Double, double, OtherFloat(random, old));
    case FieldDescriptor::CPPTYPE_STRING:
      MSRT_EDIT(String, std::string, OtherText(random, old, tree));
    case FieldDescriptor::CPPTYPE_ENUM:
      MSRT_EDIT(EnumValue, int, OtherChoice(random, *f->enum_type(), old));
    default:
      return;
  }
#undef MSRT_EDIT
}

// A message of the same kind from elsewhere in the tree; null: there is none.
std::unique_ptr<Message> Another(Random& random, const google::protobuf::Descriptor* kind,
                                 const Tree& tree) {
  for (int attempt = 0; attempt < 16 && !tree.messages.empty(); ++attempt) {
    const Message* m = tree.messages[Below(random, tree.messages.size())];
    if (m->GetDescriptor() != kind) continue;
    std::unique_ptr<Message> copy(m->New());
    copy->CopyFrom(*m);
    return copy;
  }
  return nullptr;
}

void EditMessageField(Random& random, Message* m, const FieldDescriptor* f, const Tree& tree) {
  const Reflection& r = *m->GetReflection();
  const std::unique_ptr<Message> other = Another(random, f->message_type(), tree);
  if (f->is_repeated()) {
    Message* added = r.AddMessage(m, f);
    if (other != nullptr) added->CopyFrom(*other);
    const int last = r.FieldSize(*m, f) - 1;
    if (OneIn(random, 2))
      r.SwapElements(m, f, static_cast<int>(Below(random, static_cast<size_t>(last) + 1)), last);
  } else if (other != nullptr) {
    r.MutableMessage(m, f)->CopyFrom(*other);
  } else {
    r.MutableMessage(m, f);
  }
}

void EditField(Random& random, Message* m, const FieldDescriptor* f, const Tree& tree) {
  const Reflection& r = *m->GetReflection();
  const int size = f->is_repeated() ? r.FieldSize(*m, f) : 0;
  const auto any = [&] { return static_cast<int>(Below(random, static_cast<size_t>(size))); };
  switch (Below(random, 8)) {
    case 0:
      return r.ClearField(m, f);
    case 1:
      return size > 0 ? r.RemoveLast(m, f) : r.ClearField(m, f);
    case 2:
      if (size > 1) return r.SwapElements(m, f, any(), any());
      break;
    case 3:  // removes one from the middle
      if (size > 1) {
        r.SwapElements(m, f, any(), size - 1);
        return r.RemoveLast(m, f);
      }
      break;
    default:
      break;
  }
  if (f->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
    return EditMessageField(random, m, f, tree);
  EditScalar(random, m, f, OneIn(random, 4) ? size : any(), tree);
}

void EditModel(Random& random, std::span<const std::string> words, Message* model) {
  Tree tree;
  tree.known = words;
  Collect(model, &tree);
  Message* m = tree.messages[Below(random, tree.messages.size())];
  std::vector<const FieldDescriptor*> fields;
  m->GetReflection()->ListFields(*m, &fields);
  // Mostly fields that are present; sometimes absent ones.
  const google::protobuf::Descriptor& kind = *m->GetDescriptor();
  const bool present = !fields.empty() && !OneIn(random, 4);
  const FieldDescriptor* field =
      present
          ? fields[Below(random, fields.size())]
          : kind.field(static_cast<int>(Below(random, static_cast<size_t>(kind.field_count()))));
  EditField(random, m, field, tree);
}

}  // namespace

std::vector<std::byte> MutateMessage(std::span<const std::byte> file, uint64_t seed,
                                     std::span<const std::string> words, Message* model) {
  static google::protobuf::LogHandler* const silenced =
      google::protobuf::SetLogHandler(nullptr);  // names that are not UTF-8 are intended
  (void)silenced;
  Random random(seed);
  std::vector<std::byte> out;
  const size_t edits = 1 + Below(random, 4);
  if (!OneIn(random, 16) && model->ParseFromArray(file.data(), static_cast<int>(file.size()))) {
    for (size_t i = 0; i < edits; ++i) EditModel(random, words, model);
    out.resize(model->ByteSizeLong());
    model->SerializeToArray(out.data(), static_cast<int>(out.size()));
    return out;
  }
  out.assign(file.begin(), file.end());
  for (size_t i = 0; i < edits && !out.empty(); ++i) {
    if (OneIn(random, 4)) out.resize(Below(random, out.size()) + 1);
    out[Below(random, out.size())] = static_cast<std::byte>(random());
  }
  return out;
}

}  // namespace msrt::testing
