// eval/hay.h: the running text that facts are hidden in.
#pragma once

#include <string>

#include "eval/exercise.h"

namespace deepinfer {

struct HaySentence {
  std::string text;
  bool ends_paragraph = false;
};

// A sentence of our own small grammar. It may hold numbers and names.
std::string DrawSentence(Rng& rng);

// One text: either from somewhere in the material on, or of our own sentences. With material, 70 %
// of the sources are of the first kind.
class HaySource {
 public:
  // `context` must outlive it.
  explicit HaySource(DrawContext& context);
  HaySentence Next();

 private:
  HaySentence NextOfMaterial();

  DrawContext& context_;
  const bool from_material_;
  size_t paragraph_idx_ = 0;
  size_t at_ = 0;  // byte in that paragraph
};

}  // namespace deepinfer
