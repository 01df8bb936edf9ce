#include "tidy.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <string_view>

#include "base/strings.h"

namespace deepinfer::tidy {
namespace {

// ---- What the rules say -------------------------------------------------------------------------

constexpr size_t kColumnsMax = 100;
constexpr size_t kLinesMax = 700;

// Folder under src/ -> folders it may include. apps/ and sim/ connect everything. include/deepinfer
// is the public interface: plain structs that the model's sampler and the engine share with the
// caller.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"base", {}},
    {"wire", {"base"}},
    {"kernels", {"base"}},
    {"model", {"base", "kernels", "cache", "deepinfer"}},
    {"media", {"base", "kernels"}},
    {"tokens", {"base", "deepinfer"}},
    {"eval", {"base", "tokens"}},
    {"request", {"base", "wire", "tokens", "deepinfer"}},
    {"cache", {"base", "kernels"}},
    {"schedule", {"base", "cache"}},
    {"engine", {"base", "wire", "tokens", "schedule", "model", "cache", "store", "deepinfer"}},
    {"store", {"base", "wire"}},
    {"cluster", {"base", "wire", "cache", "store", "schedule", "engine"}},
};

// Calls that reach time, files, sockets, randomness or the environment, and the only files that may
// contain them: the real forms of the four interfaces, and the place where the environment is read.
struct GuardedCall {
  std::string pattern;  // of a regular expression, over code without comments and texts
  std::set<std::string> allowed;
};
const std::vector<GuardedCall> kGuardedCalls = {
    {R"(_clock::now|\b(clock_gettime|gettimeofday|sleep_for|sleep_until|usleep)\b|std::time\()",
     {"src/base/clock.cc", "src/base/cpu_time.cc"}},
    {R"(\b[io]?fstream\b|\b(fopen|mkstemp|mkdtemp|tmpfile)\b|::open\(|std::filesystem)",
     {"src/base/disk.cc", "src/base/process_memory.cc"}},
    {R"(::(socket|connect|bind|accept)\()", {}},
    {R"(\b(random_device|getrandom|s?rand|drand48)\b)", {"src/base/rng.cc"}},
    {R"(\b(getenv|setenv|environ)\b)", {"src/apps/environment.cc"}},
};

// An oracle may see the contracts of ops and the tables of formats, nothing that computes fast.
const std::regex kOracleInclude(
    R"(base/.*|kernels/formats/.*|kernels/(fault|kv_layout)\.h|kernels/(\w+)/\2\.h)");

// Split, so that this file does not contain what it looks for.
const std::regex kForbiddenWord(
    "\\b(TO"
    "DO|FIX"
    "ME)\\b|/wo"
    "rk/");

// ---- Reading ------------------------------------------------------------------------------------

bool EndsWith(const std::string& text, std::string_view end) { return text.ends_with(end); }

bool IsCode(const std::string& path) {
  return EndsWith(path, ".cc") || EndsWith(path, ".h") || EndsWith(path, ".cu") ||
         EndsWith(path, ".cuh");
}
bool IsHeader(const std::string& path) { return EndsWith(path, ".h") || EndsWith(path, ".cuh"); }
bool IsTest(const std::string& path) {
  return EndsWith(path, "_test.cc") || path.find("/testing/") != std::string::npos ||
         path.find("_for_tests.") != std::string::npos;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// "src/model/config.h" -> "model"; "" outside src/.
std::string Folder(const std::string& path) {
  if (!path.starts_with("src/")) return "";
  return path.substr(4, path.find('/', 4) - 4);
}

size_t NumCharacters(const std::string& utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// One past the end of the comment or literal that begins at `at`; `at` itself if none does.
size_t EndOfSkipped(std::string_view text, size_t at) {
  const auto after = [&](std::string_view end, size_t from) {
    const size_t found = text.find(end, from);
    return found == std::string_view::npos ? text.size() : found + end.size();
  };
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
  if (rest.starts_with("/*")) return after("*/", at + 2);
  if (rest.starts_with("R\"")) {  // R"name( ... )name"
    const size_t open = std::min(text.find('(', at), text.size());
    return after(StrCat(")", text.substr(at + 2, open - at - 2), "\""), open);
  }
  const bool separates_digits = rest[0] == '\'' && at > 0 && std::isalnum(text[at - 1]) != 0;
  if ((rest[0] != '"' && rest[0] != '\'') || separates_digits) return at;
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == rest[0] || text[i] == '\n') {
      return i + 1;
    }
  }
  return text.size();
}

// The same text with comments and literals blanked; lines stay where they are.
std::string CodeOnly(std::string text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = EndOfSkipped(text, at);
    for (size_t i = at; i < end; ++i) {
      if (text[i] != '\n') text[i] = ' ';
    }
    at = std::max(end, at + 1);
  }
  return text;
}

// ---- Checking -----------------------------------------------------------------------------------

class Checker {
 public:
  Checker(const SourceTree& tree, const std::string& compiled) : tree_(tree), compiled_(compiled) {}

  std::vector<std::string> Run() {
    for (const auto& [path, text] : tree_) CollectIncludes(path, text);
    for (const auto& [path, text] : tree_) {
      CheckLines(path, text);
      if (!IsCode(path)) continue;
      CheckHeader(path, text);
      CheckIncludes(path);
      if (path.starts_with("src/")) {
        CheckCalls(path, text);
        CheckAlive(path);
      }
    }
    return std::move(faults_);
  }

 private:
  struct Include {
    std::string what;  // between the quotes
    size_t line;
  };

  template <typename... Args>
  void Report(const std::string& path, size_t line, const Args&... what) {
    faults_.push_back(StrCat(path, ":", line, ": ", what...));
  }

  void CollectIncludes(const std::string& path, const std::string& text) {
    static const std::regex kInclude(R"re(^\s*#\s*include\s*"([^"]+)")re");
    if (!IsCode(path)) return;
    const std::vector<std::string> lines = Lines(text);
    for (size_t i = 0; i < lines.size(); ++i) {
      std::smatch match;
      if (std::regex_search(lines[i], match, kInclude)) {
        includes_[path].push_back({match[1], i + 1});
        included_.insert(match[1]);
      }
    }
  }

  void CheckLines(const std::string& path, const std::string& text) {
    // Pages wrap by themselves; tests hold texts that cannot be wrapped.
    const bool may_be_wide = EndsWith(path, ".md") || EndsWith(path, ".py") || IsTest(path);
    const std::vector<std::string> lines = Lines(text);
    if (IsCode(path) && lines.size() > kLinesMax) {
      Report(path, kLinesMax + 1, "file of ", lines.size(), " lines, at most ", kLinesMax);
    }
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!may_be_wide && NumCharacters(lines[i]) > kColumnsMax) {
        Report(path, i + 1, "line of ", NumCharacters(lines[i]), " characters, at most ",
               kColumnsMax);
      }
      std::smatch match;
      if (std::regex_search(lines[i], match, kForbiddenWord)) {
        Report(path, i + 1, "\"", match.str(), "\" must not be committed");
      }
    }
  }

  // "// model/config.h: what it owns", then #pragma once.
  void CheckHeader(const std::string& path, const std::string& text) {
    if (!IsHeader(path)) return;
    std::string name = path;
    for (const std::string_view root : {"src/", "include/"}) {
      if (path.starts_with(root)) name = path.substr(root.size());
    }
    if (!text.starts_with(StrCat("// ", name, ": "))) {
      Report(path, 1, "a header begins with \"// ", name, ": what it owns\"");
    }
    if (text.find("\n#pragma once\n") == std::string::npos) Report(path, 1, "no #pragma once");
  }

  void CheckIncludes(const std::string& path) {
    const auto rule = kMayInclude.find(Folder(path));
    for (const Include& include : includes_[path]) {
      const std::string folder = include.what.substr(0, include.what.find('/'));
      if (rule != kMayInclude.end() && folder != rule->first && !rule->second.contains(folder)) {
        Report(path, include.line, rule->first, "/ must not include ", include.what);
      }
      if (EndsWith(path, "_ref.cc") && !std::regex_match(include.what, kOracleInclude)) {
        Report(path, include.line, "an oracle must not include ", include.what);
      }
    }
  }

  void CheckCalls(const std::string& path, const std::string& text) {
    static const std::vector<std::regex> kPatterns = [] {
      std::vector<std::regex> patterns;
      for (const GuardedCall& call : kGuardedCalls) patterns.emplace_back(call.pattern);
      return patterns;
    }();
    if (IsTest(path)) return;
    const std::vector<std::string> lines = Lines(CodeOnly(text));
    for (size_t i = 0; i < lines.size(); ++i) {
      for (size_t k = 0; k < kPatterns.size(); ++k) {
        std::smatch match;
        if (!kGuardedCalls[k].allowed.contains(path) &&
            std::regex_search(lines[i], match, kPatterns[k])) {
          Report(path, i + 1, "\"", match.str(), "\" belongs behind an interface of base/");
        }
      }
    }
  }

  // Sources are compiled, headers included by somebody else.
  void CheckAlive(const std::string& path) {
    if (IsHeader(path)) {
      if (!included_.contains(path.substr(4)) && path != "src/base/pch.h") {
        Report(path, 1, "header that nothing includes");
      }
      return;
    }
    const std::string folder = StrCat("src/", Folder(path), "/");
    const auto list = tree_.find(folder + "CMakeLists.txt");
    const std::regex named(
        StrCat("[\\s(]", std::regex_replace(path.substr(folder.size()), std::regex("[.]"), "[.]"),
               "[\\s)]"));
    const bool listed = list != tree_.end() && std::regex_search(list->second, named);
    if (!listed && compiled_.find(path) == std::string::npos) {
      Report(path, 1, "file that ", folder, "CMakeLists.txt does not build");
    }
  }

  const SourceTree& tree_;
  const std::string& compiled_;
  std::map<std::string, std::vector<Include>> includes_;
  std::set<std::string> included_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> FindFaults(const SourceTree& tree, const std::string& compiled) {
  return Checker(tree, compiled).Run();
}

}  // namespace deepinfer::tidy
