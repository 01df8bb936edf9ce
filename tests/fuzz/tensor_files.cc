#include "tensor_files.h"

#include <limits>
#include <set>

#include "fuzz.h"
#include "model/checkpoint.h"
#include "model/usual_json.h"

namespace deepinfer::fuzz {
namespace {

void CheckTensor(const TensorFiles& files, const StoredTensor& tensor) {
  CHECK(tensor.file >= 0 && static_cast<size_t>(tensor.file) < files.files.size());
  CHECK(files.files[static_cast<size_t>(tensor.file)].readable);
  CHECK_GE(tensor.offset, 8);
  CHECK_GE(tensor.num_bytes, 0);
  CHECK_LE(tensor.num_bytes, std::numeric_limits<int64_t>::max() - tensor.offset);
  int64_t bytes = DtypeBytes(tensor.dtype);
  for (const int64_t side : tensor.shape) CHECK(!__builtin_mul_overflow(bytes, side, &bytes));
  CHECK_EQ(bytes, tensor.num_bytes);
  if (!files.IsWhole(tensor)) {
    CHECK(!files.problems.empty());
    return;
  }
  const auto view = files.Bytes(tensor);
  CHECK(view.ok());
  CHECK_EQ(static_cast<int64_t>(view->size()), tensor.num_bytes);
  volatile uint8_t sum = 0;  // reads every byte
  for (const uint8_t byte : *view) sum = static_cast<uint8_t>(sum + byte);
}

// Two tensors that the corpora's whole files have, and one that they have not.
const std::vector<TensorSpec>& SomeSpecs() {
  static const auto* const specs =
      new std::vector<TensorSpec>{{.name = "a.weight", .dtype = Dtype::kBf16, .shape = {2, 2}},
                                  {.name = "b.scale", .dtype = Dtype::kF8E8m0, .shape = {3}},
                                  {.name = "c.weight", .dtype = Dtype::kF32, .shape = {1}}};
  return *specs;
}

}  // namespace

void CheckTensorFiles(const TensorFiles& files) {
  std::set<std::string_view> names;
  for (const StoredTensor& tensor : files.tensors) {
    CHECK(names.insert(tensor.name).second);
    CheckTensor(files, tensor);
  }
  for (const TensorProblem& problem : files.problems) CheckLine(ToLine(problem));
  for (const TensorProblem& problem : FindDifferences(SomeSpecs(), files)) {
    CheckLine(ToLine(problem));
  }
  const auto items = MakeScanItems(SomeSpecs(), files);
  CHECK(items.ok());
  for (const ScanItem& item : *items) {
    CHECK_EQ(static_cast<int64_t>(item.bytes.size()), item.spec->num_bytes());
  }
}

void CheckUsualJson(std::string_view text) {
  if (const auto usual = ReadUsualHeader(text)) {
    const auto events = ReadHeaderByEvents(text);
    CHECK(events.ok());
    CHECK(*usual == *events);
  }
  if (const auto usual = ReadUsualIndex(text); usual && !usual->empty()) {
    std::vector<std::pair<std::string, std::string>> events;
    CHECK(ReadIndexByEvents(text, "index", [&](std::string&& tensor, std::string&& file) {
            events.emplace_back(std::move(tensor), std::move(file));
            return OkStatus();
          }).ok());
    CHECK(*usual == events);
  }
}

}  // namespace deepinfer::fuzz
