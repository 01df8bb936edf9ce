#include <unordered_map>
#include <unordered_set>

#include "model/checkpoint.h"

namespace deepinfer {
namespace {

// Past these a checkpoint is simply another one, and looking for near names would take long.
constexpr size_t kMaxSuggestions = 64;
constexpr size_t kMaxExtraNames = 4096;

// Fewest single-character changes that turn a into b.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

bool IsUnfoldedHyperConnection(std::string_view name) {
  return name.find("hc_") != std::string_view::npos && name.ends_with("_norm.weight");
}

class Comparison {
 public:
  Comparison(const std::vector<TensorSpec>& expected, const TensorFiles& files)
      : expected_(expected), files_(files), problems_(files.problems) {}

  std::vector<TensorProblem> Run() {
    std::unordered_map<std::string_view, const StoredTensor*> stored;
    for (const StoredTensor& tensor : files_.tensors) stored.emplace(tensor.name, &tensor);
    std::unordered_set<std::string_view> known;
    for (const TensorSpec& spec : expected_) known.insert(spec.name);
    for (const StoredTensor& tensor : files_.tensors) {
      if (!known.contains(tensor.name)) extra_.push_back(&tensor);
    }
    for (const TensorSpec& spec : expected_) {
      const auto at = stored.find(spec.name);
      if (at != stored.end()) {
        CompareOne(spec, *at->second);
      } else if (!files_.explained.contains(spec.name)) {
        Missing(spec);
      }
    }
    for (const StoredTensor* tensor : extra_) Extra(*tensor);
    return std::move(problems_);
  }

 private:
  const std::string& FileName(const StoredTensor& tensor) const {
    return files_.files[static_cast<size_t>(tensor.file)].name;
  }

  void CompareOne(const TensorSpec& spec, const StoredTensor& tensor) {
    if (spec.dtype == tensor.dtype && spec.shape == tensor.shape) return;
    problems_.push_back({spec.name, DescribeTensor(spec.dtype, spec.shape),
                         DescribeTensor(tensor.dtype, tensor.shape), FileName(tensor), ""});
  }

  void Missing(const TensorSpec& spec) {
    const auto near = NearestExtra(spec);
    if (near == extra_.end()) {
      problems_.push_back(
          {spec.name, DescribeTensor(spec.dtype, spec.shape), "no such tensor", "", ""});
      return;
    }
    problems_.push_back({spec.name, DescribeTensor(spec.dtype, spec.shape),
                         StrCat((*near)->name, " of that type and shape"), FileName(**near),
                         "did you mean it? Renamed tensors are not guessed at"});
    extra_.erase(near);
  }

  // The unexpected tensor of the same type and shape whose name is nearest, if it is near enough.
  std::vector<const StoredTensor*>::iterator NearestExtra(const TensorSpec& spec) {
    auto best = extra_.end();
    if (extra_.size() > kMaxExtraNames || problems_.size() > kMaxSuggestions) return best;
    size_t best_distance = spec.name.size() / 2 + 1;
    for (auto at = extra_.begin(); at != extra_.end(); ++at) {
      if ((*at)->dtype != spec.dtype || (*at)->shape != spec.shape) continue;
      const size_t distance = EditDistance(spec.name, (*at)->name);
      if (distance >= best_distance) continue;
      best = at;
      best_distance = distance;
    }
    return best;
  }

  void Extra(const StoredTensor& tensor) {
    problems_.push_back({tensor.name, "no tensor of this name",
                         DescribeTensor(tensor.dtype, tensor.shape), FileName(tensor),
                         IsUnfoldedHyperConnection(tensor.name)
                             ? "hyper-connection weights with separate norms are not supported: "
                               "fold hc_*_norm.weight "
                               "into hc_*_fn when exporting"
                             : ""});
  }

  const std::vector<TensorSpec>& expected_;
  const TensorFiles& files_;
  std::vector<const StoredTensor*> extra_;
  std::vector<TensorProblem> problems_;
};

}  // namespace

std::vector<TensorProblem> FindDifferences(const std::vector<TensorSpec>& expected,
                                           const TensorFiles& files) {
  return Comparison(expected, files).Run();
}

}  // namespace deepinfer
