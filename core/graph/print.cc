// Graphs and modules as text.
#include <algorithm>

#include "core/graph/outline.h"

namespace msrt {
namespace {

void AppendDim(std::string* out, int64_t dim, const Module* module) {
  if (IsKnown(dim)) AppendTo(out, dim);
  else if (IsSymbol(dim) && module != nullptr && SymbolOf(dim) < module->symbols.size())
    out->append(module->symbols[SymbolOf(dim)]);
  else if (IsSymbol(dim)) StrAppend(out, "s", SymbolOf(dim));
  else out->push_back('?');
}

void AppendType(std::string* out, const Type& type, const Module* module) {
  if (!type.is_tensor() || !type.rank_known) {
    AppendTo(out, type);
    return;
  }
  AppendTo(out, type.dtype);
  out->push_back('[');
  for (int i = 0; i < type.rank(); ++i) {
    if (i != 0) out->append(", ");
    AppendDim(out, type.dims[i], module);
  }
  out->push_back(']');
}

void AppendValue(std::string* out, const Graph& graph, ValueId id) {
  if (id == kNoValue) {
    out->append("_");
    return;
  }
  const std::string& name = graph.value(id).name;
  if (name.empty()) StrAppend(out, "%", IndexOf(id));
  else StrAppend(out, "%", name);
}

void AppendTyped(std::string* out, const Graph& graph, ValueId id, const Module* module) {
  AppendValue(out, graph, id);
  if (id == kNoValue) return;
  out->append(": ");
  AppendType(out, graph.value(id).type, module);
}

// Appends one line without its end; `append_attr` appends the value of an attribute.
template <typename AppendAttr>
void AppendNode(std::string* out, const Graph& graph, size_t n, const Module* module,
                const AppendAttr& append_attr) {
  const Node& node = graph.nodes[n];
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (i != 0) *out += ", ";
    AppendTyped(out, graph, node.outputs[i], module);
  }
  StrAppend(out, " = ", OpName(node), "(");
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i != 0) *out += ", ";
    AppendValue(out, graph, node.inputs[i]);
  }
  *out += ")";
  const char* separator = " {";
  for (const Attr& a : node.attrs) {
    StrAppend(out, separator, a.name, "=");
    append_attr(a.value);
    separator = ", ";
  }
  if (!node.attrs.empty()) *out += "}";
  if (!node.name.empty()) StrAppend(out, "  # ", n, " ", node.name);
}

void AppendReturn(std::string* out, const Graph& graph) {
  *out += "return ";
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (i != 0) *out += ", ";
    AppendValue(out, graph, graph.outputs[i]);
  }
}

void AppendStates(std::string* out, const Module& module) {
  StrAppend(out, "module '", module.name, "' by '", module.producer, "'\n");
  for (const StateSlot& s : module.states) {
    StrAppend(out, "state '", s.name, "': ");
    AppendType(out, s.type, &module);
    if (s.role != StateRole::kCache) StrAppend(out, " ", StateRoleName(s.role));
    *out += "\n";
  }
}

bool IsEntry(const Module& module, size_t graph) {
  return std::find(module.entries.begin(), module.entries.end(), graph) != module.entries.end();
}

std::vector<GraphRef> RefsIn(const AttrValue& value) {
  if (const auto* one = std::get_if<GraphRef>(&value)) return {*one};
  if (const auto* several = std::get_if<std::vector<GraphRef>>(&value)) return *several;
  return {};
}

class OutlinePrinter {
 public:
  explicit OutlinePrinter(const Module& module)
      : module_(module), uses_(module.graphs.size()), printed_(module.graphs.size()) {}

  std::string Run() {
    AppendStates(&out_, module_);
    for (const Graph& graph : module_.graphs) {
      for (const Node& node : graph.nodes) {
        for (const Attr& a : node.attrs) {
          for (GraphRef ref : RefsIn(a.value)) {
            if (ref.index < uses_.size()) ++uses_[ref.index];
          }
        }
      }
    }
    // Graphs with a single call are printed at that call. The second round prints the rest: graphs
    // that are never called, or only by each other.
    for (const bool rest : {false, true}) {
      for (size_t g = 0; g < module_.graphs.size(); ++g) {
        if (!printed_[g] && (rest || IsEntry(module_, g) || uses_[g] > 1)) PrintTop(g);
      }
    }
    return std::move(out_);
  }

 private:
  // Graphs nested deeper than this are printed at the top level again.
  static constexpr int kMaxDepth = 8;

  void PrintTop(size_t g) {
    StrAppend(&out_, IsEntry(module_, g) ? "entry " : "", "graph #", g, " '",
              module_.graphs[g].name, "' ");
    PrintGraph(g, nullptr, nullptr, 0);
  }

  void PrintGraph(size_t g, const Graph* caller, const Node* node, int depth) {
    printed_[g] = true;
    const Graph& graph = module_.graphs[g];
    out_ += "(";
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      if (i != 0) out_ += ", ";
      AppendTyped(&out_, graph, graph.inputs[i], &module_);
      if (node != nullptr) PrintOrigin(graph, i, *caller, *node);
    }
    out_ += ") {\n";
    const std::string indent(static_cast<size_t>(depth) * 4 + 2, ' ');
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      out_ += indent;
      AppendNode(&out_, graph, n, &module_, [&](const AttrValue& value) { PrintAttr(value); });
      out_ += "\n";
      PrintCallees(graph, n, depth);
    }
    out_ += indent;
    AppendReturn(&out_, graph);
    StrAppend(&out_, "\n", indent.substr(2), "}\n");
  }

  // Appends the value that the caller passes for an input. The inputs of node and graph correspond
  // from the end, except for Partial, whose function is called later.
  void PrintOrigin(const Graph& graph, size_t i, const Graph& caller, const Node& node) {
    const bool from_front = node.op == "Partial";
    // The iteration and the condition come from the loop itself.
    const size_t loop_own = node.op == "Loop" ? 2 : 0;
    const size_t at = from_front ? i : i + node.inputs.size() - graph.inputs.size();
    if (i < loop_own || at >= node.inputs.size()) return;
    out_ += " <- ";
    AppendValue(&out_, caller, node.inputs[at]);
  }

  void PrintCallees(const Graph& graph, size_t n, int depth) {
    for (const Attr& a : graph.nodes[n].attrs) {
      for (GraphRef ref : RefsIn(a.value)) {
        const bool here = ref.index < uses_.size() && uses_[ref.index] == 1 &&
                          !IsEntry(module_, ref.index) && !printed_[ref.index];
        if (!here || depth == kMaxDepth) continue;
        StrAppend(&out_, std::string(static_cast<size_t>(depth) * 4 + 4, ' '), a.name, " #",
                  ref.index, " '", module_.graphs[ref.index].name, "' ");
        PrintGraph(ref.index, &graph, &graph.nodes[n], depth + 1);
      }
    }
  }

  void PrintAttr(const AttrValue& value) {
    const std::vector<GraphRef> refs = RefsIn(value);
    if (refs.empty()) return AppendTo(&out_, value);
    for (size_t i = 0; i < refs.size(); ++i) {
      StrAppend(&out_, i == 0 ? "" : " ", "#", refs[i].index);
      if (refs[i].index < module_.graphs.size())
        StrAppend(&out_, " '", module_.graphs[refs[i].index].name, "'");
    }
  }

  const Module& module_;
  std::vector<size_t> uses_;
  std::vector<bool> printed_;
  std::string out_;
};

}  // namespace

std::string TypeText(const Type& type, const Module& module) {
  std::string text;
  AppendType(&text, type, &module);
  return text;
}

std::string Print(const Graph& graph, const Module* module) {
  std::string out = StrCat("graph '", graph.name, "' (");
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (i != 0) out += ", ";
    AppendTyped(&out, graph, graph.inputs[i], module);
  }
  out += ") {\n";
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    out += "  ";
    AppendNode(&out, graph, n, module, [&](const AttrValue& value) { AppendTo(&out, value); });
    out += "\n";
  }
  out += "  ";
  AppendReturn(&out, graph);
  out += "\n}\n";
  return out;
}

std::string Print(const Module& module) {
  std::string out;
  AppendStates(&out, module);
  for (size_t g = 0; g < module.graphs.size(); ++g) {
    StrAppend(&out, "#", g, IsEntry(module, g) ? " entry " : " ");
    out += Print(module.graphs[g], &module);
  }
  return out;
}

std::string Outline(const Module& module) { return OutlinePrinter(module).Run(); }

}  // namespace msrt
