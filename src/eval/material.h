// eval/material.h: texts of corpora that training exercises are made from.
//
// Never part of the repository: tools/nano fetches the sources and writes one folder:
//   hay.txt       clean prose, a paragraph a line
//   glosses.tsv   word, part of speech (noun, verb, adj, adv), definition, synonyms joined by "; ",
//                 1 for a core word or 0
//   tools.jsonl   a tool definition a line: an object with name, description and parameters
//   words.txt     a word a line
// UTF-8 throughout. Threads: immutable.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/status.h"

namespace deepinfer {

struct Gloss {
  std::string_view word, part_of_speech, definition, synonyms;
  bool core = false;
};

// The files as they were read.
struct MaterialTexts {
  std::string hay, glosses, tools, words;
};

class Material {
 public:
  // Errors: as Disk::ReadText; as Parse.
  static StatusOr<std::unique_ptr<const Material>> Load(Disk& disk, const std::string& directory);
  // Errors: kInvalidArgument naming file and line; also for a file without any line.
  static StatusOr<std::unique_ptr<const Material>> Parse(MaterialTexts texts);

  std::span<const std::string_view> hay() const { return hay_; }
  // One a word: the first of each, in the file's order. None is both core and not.
  std::span<const Gloss> core_glosses() const { return core_glosses_; }
  std::span<const Gloss> other_glosses() const { return other_glosses_; }
  std::span<const std::string_view> tools() const { return tools_; }  // JSON objects
  std::span<const std::string_view> words() const { return words_; }

 private:
  Material() = default;
  Status ParseGlosses();

  MaterialTexts texts_;  // what the views point into
  std::vector<std::string_view> hay_, tools_, words_;
  std::vector<Gloss> core_glosses_, other_glosses_;
};

}  // namespace deepinfer
