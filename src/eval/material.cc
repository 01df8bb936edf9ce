#include "eval/material.h"

#include <set>

namespace deepinfer {
namespace {

constexpr std::string_view kHayFile = "hay.txt", kGlossFile = "glosses.tsv",
                           kToolsFile = "tools.jsonl", kWordsFile = "words.txt";

std::vector<std::string_view> SplitText(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Lines that are not empty.
StatusOr<std::vector<std::string_view>> LinesOf(std::string_view text, std::string_view file) {
  std::vector<std::string_view> lines = SplitText(text, '\n');
  std::erase_if(lines, [](std::string_view line) { return line.empty(); });
  if (lines.empty()) {
    return InvalidArgument("material: ", file,
                           ": expected lines of text, found none; make it again "
                           "with tools/nano/corpus.py");
  }
  return lines;
}

}  // namespace

StatusOr<std::unique_ptr<const Material>> Material::Load(Disk& disk, const std::string& directory) {
  MaterialTexts texts;
  const auto read = [&](std::string_view name, std::string& text) -> Status {
    DI_ASSIGN_OR_RETURN(text, disk.ReadText(StrCat(directory, "/", name)));
    return OkStatus();
  };
  DI_RETURN_IF_ERROR(read(kHayFile, texts.hay));
  DI_RETURN_IF_ERROR(read(kGlossFile, texts.glosses));
  DI_RETURN_IF_ERROR(read(kToolsFile, texts.tools));
  DI_RETURN_IF_ERROR(read(kWordsFile, texts.words));
  return Parse(std::move(texts));
}

StatusOr<std::unique_ptr<const Material>> Material::Parse(MaterialTexts texts) {
  std::unique_ptr<Material> material(new Material);
  material->texts_ = std::move(texts);
  const MaterialTexts& kept = material->texts_;
  DI_ASSIGN_OR_RETURN(material->hay_, LinesOf(kept.hay, kHayFile));
  DI_ASSIGN_OR_RETURN(material->tools_, LinesOf(kept.tools, kToolsFile));
  DI_ASSIGN_OR_RETURN(material->words_, LinesOf(kept.words, kWordsFile));
  DI_RETURN_IF_ERROR(material->ParseGlosses());
  return std::unique_ptr<const Material>(std::move(material));
}

Status Material::ParseGlosses() {
  DI_ASSIGN_OR_RETURN(const std::vector<std::string_view> lines,
                      LinesOf(texts_.glosses, kGlossFile));
  std::set<std::string_view> seen;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string_view> fields = SplitText(lines[i], '\t');
    if (fields.size() != 5 || fields[0].empty() || fields[2].empty() ||
        (fields[4] != "0" && fields[4] != "1")) {
      return InvalidArgument("material: ", kGlossFile, " line ", i + 1,
                             ": expected word, part of speech, definition, synonyms and 0 or 1 "
                             "with tabs between, found \"",
                             lines[i], "\"");
    }
    if (!seen.insert(fields[0]).second) continue;
    const Gloss gloss{fields[0], fields[1], fields[2], fields[3], fields[4] == "1"};
    (gloss.core ? core_glosses_ : other_glosses_).push_back(gloss);
  }
  return OkStatus();
}

}  // namespace deepinfer
