// model/testing/tiny_checkpoint.h: a small checkpoint in memory that tests take apart and put
// together wrong.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/simulated_disk.h"

namespace deepinfer {

struct LooseTensor {
  std::string name;
  std::string dtype;  // as the format spells it
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
  std::string file;
};

// The synthetic `tiny` checkpoint (tools/tiny/tiny.json, seed 101) in directory "model" of a disk
// of its own. Tensors and texts are changed in memory; Write() makes files of them.
class TinyCheckpoint {
 public:
  TinyCheckpoint();

  LooseTensor& At(const std::string& name);  // aborts the test when there is none
  void Remove(const std::string& name);
  void Write();

  std::string directory() const { return "model"; }

  SimulatedDisk disk;
  std::string config_json;
  std::vector<LooseTensor> tensors;               // payload order inside each file
  std::map<std::string, std::string> index_says;  // tensor -> file, where it differs from the truth
  bool write_index = true;
};

// The shard text and bytes of some tensors: length, header, payload in the order given.
std::string SafetensorsText(const std::vector<LooseTensor>& tensors);

// Replaces the first `from` in `text`. Aborts the test when there is none.
std::string Replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace deepinfer
