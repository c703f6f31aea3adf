#include "tests/hostile/bad_onnx.h"

namespace msrt::testing {
namespace {

#define MSRT_C "input { name: 'c' type { tensor_type { elem_type: 9 shape {} } } } "
#define MSRT_X \
  "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } "
#define MSRT_Y " output { name: 'y' }"
#define MSRT_THEN                                                                               \
  "attribute { name: 'then_branch' type: GRAPH g { name: 't' node { op_type: 'Neg' input: 'x' " \
  "output: 'a' } output { name: 'a' } } } "
#define MSRT_ELSE                                                                               \
  "attribute { name: 'else_branch' type: GRAPH g { name: 'e' node { op_type: 'Abs' input: 'x' " \
  "output: 'b' } output { name: 'b' } } } "
#define MSRT_BODY(inputs, outputs)                                                              \
  "attribute { name: 'body' type: GRAPH g { name: 'body' " inputs                               \
  " node { op_type: 'Identity' input: 'go' output: 'again' } node { op_type: 'Neg' input: 'v' " \
  "output: 'next' } " outputs " } } "
#define MSRT_OWN "opset_import { domain: 'own' version: 1 } "
#define MSRT_FUNCTION(name, node) \
  "functions { name: '" name      \
  "' domain: 'own' input: 'a' output: 'b' opset_import { version: 21 } " node " } "
#define MSRT_CALL "node { name: 'call' domain: 'own' op_type: 'F' input: 'x' output: 'y' }"

constexpr BadOnnx kBadControl[] = {
    // If.
    {"IfWithoutAnElse", "node 'if' (If): has 1 graphs, must have 2",
     MSRT_C MSRT_X "node { name: 'if' op_type: 'If' input: 'c' output: 'y' " MSRT_THEN "}" MSRT_Y},
    {"IfWithTwoThens", "attribute 'then_branch' is there twice",
     MSRT_C MSRT_X "node { name: 'if' op_type: 'If' input: 'c' output: 'y' " MSRT_THEN MSRT_THEN
                   "}" MSRT_Y},
    {"IfWithoutACondition", "has 0 inputs",
     MSRT_C MSRT_X "node { name: 'if' op_type: 'If' output: 'y' " MSRT_THEN MSRT_ELSE "}" MSRT_Y},
    {"IfWithTwoConditions", "has 2 inputs",
     MSRT_C MSRT_X
     "node { name: 'if' op_type: 'If' input: 'c' input: 'c' output: 'y' " MSRT_THEN MSRT_ELSE
     "}" MSRT_Y},
    {"IfOnANumber", "'if'",
     MSRT_C MSRT_X "node { name: 'if' op_type: 'If' input: 'x' output: 'y' " MSRT_THEN MSRT_ELSE
                   "}" MSRT_Y},
    {"IfWantsTooMuch", "has 2 outputs",
     MSRT_C MSRT_X
     "node { name: 'if' op_type: 'If' input: 'c' output: 'y' output: 'z' " MSRT_THEN MSRT_ELSE
     "}" MSRT_Y},
    {"IfWithBranchesOfOtherNames", "'if'",
     MSRT_C MSRT_X "node { name: 'if' op_type: 'If' input: 'c' output: 'y' attribute { name: "
                   "'left' type: GRAPH g { node { op_type: 'Neg' input: "
                   "'x' output: 'a' } output { name: 'a' } } } " MSRT_ELSE "}" MSRT_Y},
    {"IfOfDifferentTypes", "'if'",
     MSRT_C MSRT_X "node { name: 'if' op_type: 'If' input: 'c' output: 'y' " MSRT_THEN
                   "attribute { name: 'else_branch' type: GRAPH g { node { op_type: 'Shape' input: "
                   "'x' output: 'b' } output { name: 'b' } } } }" MSRT_Y},
    {"IfBranchWithInputs", "'if'",
     MSRT_C MSRT_X "node { name: 'if' op_type: 'If' input: 'c' output: 'y' " MSRT_THEN
                   "attribute { name: 'else_branch' type: GRAPH g { input { name: 'q' type { "
                   "tensor_type { elem_type: 1 } } } node { op_type: "
                   "'Neg' input: 'q' output: 'b' } output { name: 'b' } } } }" MSRT_Y},
    {"CaptureOfNothing", "uses 'nowhere', which no node, input or outer graph defines",
     MSRT_C MSRT_X "node { name: 'if' op_type: 'If' input: 'c' output: 'y' " MSRT_THEN
                   "attribute { name: 'else_branch' type: GRAPH g { name: 'e' node { op_type: "
                   "'Neg' input: 'nowhere' output: 'b' } output "
                   "{ name: 'b' } } } }" MSRT_Y},
    {"CaptureOfWhatComesFromIt", "'if' depends on itself",
     MSRT_C MSRT_X "node { name: 'if' op_type: 'If' input: 'c' output: 'y' " MSRT_THEN
                   "attribute { name: 'else_branch' type: GRAPH g { name: 'e' node { op_type: "
                   "'Neg' input: 'y' output: 'b' } output { "
                   "name: 'b' } } } }" MSRT_Y},
    {"BranchGivesNothing", "'if'",
     MSRT_C MSRT_X "node { name: 'if' op_type: 'If' input: 'c' output: 'y' " MSRT_THEN
                   "attribute { name: 'else_branch' type: GRAPH g { name: 'e' } } }" MSRT_Y},
    {"BranchIsATensor", "'if'",
     MSRT_C MSRT_X "node { name: 'if' op_type: 'If' input: 'c' output: 'y' " MSRT_THEN
                   "attribute { name: 'else_branch' type: INT i: 1 } }" MSRT_Y},
    // Loop and Scan.
    {"LoopWithoutABody", "has 0 graphs",
     MSRT_X
     "node { name: 'loop' op_type: 'Loop' input: '' input: '' input: 'x' output: 'y' }" MSRT_Y},
    {"LoopBodyOfTooFewInputs", "'loop'",
     MSRT_X
     "node { name: 'loop' op_type: 'Loop' input: '' input: '' input: 'x' output: 'y' " MSRT_BODY(
         "input { name: 'go' } input { name: 'v' }",
         "output { name: 'again' } output { name: 'next' }") "}" MSRT_Y},
    {"LoopBodyOfTooFewOutputs", "'loop'",
     MSRT_X
     "node { name: 'loop' op_type: 'Loop' input: '' input: '' input: 'x' output: 'y' " MSRT_BODY(
         "input { name: 'i' } input { name: 'go' } input { name: 'v' }",
         "output { name: 'again' }") "}" MSRT_Y},
    {"LoopBodyGoesOnByANumber", "'loop'",
     MSRT_X
     "node { name: 'loop' op_type: 'Loop' input: '' input: '' input: 'x' output: 'y' " MSRT_BODY(
         "input { name: 'i' } input { name: 'go' } input { name: 'v' }",
         "output { name: 'next' } output { name: 'next' }") "}" MSRT_Y},
    {"LoopCarriesAnotherType", "'loop'",
     MSRT_X
     "node { name: 'loop' op_type: 'Loop' input: '' input: '' input: 'x' output: 'y' " MSRT_BODY(
         "input { name: 'i' } input { name: 'go' } input { name: 'v' }",
         "output { name: 'again' } output { name: 'i' }") "}" MSRT_Y},
    {"LoopWantsTooMuch", "'loop'",
     MSRT_X
     "node { name: 'loop' op_type: 'Loop' input: '' input: '' input: 'x' output: 'y' output: 'z' "
     "output: 'q' " MSRT_BODY("input { name: 'i' } input { name: 'go' } input { name: 'v' }",
                              "output { name: 'again' } output { name: 'next' }") "}" MSRT_Y},
    {"ScanOfNothing", "num_scan_inputs = 0",
     MSRT_X "node { name: 'scan' op_type: 'Scan' input: 'x' output: 'y' attribute { name: 'body' "
            "type: GRAPH g { input { name: 'v' } node "
            "{ op_type: 'Neg' input: 'v' output: 'next' } output { name: 'next' } } } }" MSRT_Y},
    {"ScanOfTooMany", "num_scan_inputs = 9223372036854775807",
     MSRT_X "node { name: 'scan' op_type: 'Scan' input: 'x' output: 'y' attribute { name: "
            "'num_scan_inputs' type: INT i: "
            "9223372036854775807 } attribute { name: 'body' type: GRAPH g { input { name: 'v' } "
            "node { op_type: 'Neg' input: 'v' output: "
            "'next' } output { name: 'next' } } } }" MSRT_Y},
    {"ScanOfAnAxisThatIsNotThere", "'scan'",
     MSRT_X "node { name: 'scan' op_type: 'Scan' input: 'x' output: 'y' attribute { name: "
            "'num_scan_inputs' type: INT i: 1 } attribute { "
            "name: 'scan_input_axes' type: INTS ints: 5 } attribute { name: 'body' type: GRAPH g { "
            "input { name: 'v' } node { op_type: "
            "'Neg' input: 'v' output: 'next' } output { name: 'next' } } } }" MSRT_Y},
    // Functions.
    {"FunctionCallsItself", "function 'own.F' calls itself", MSRT_X MSRT_CALL MSRT_Y,
     MSRT_OWN MSRT_FUNCTION("F", "node { domain: 'own' op_type: 'F' input: 'a' output: 'b' }")},
    {"FunctionsCallEachOther", "function 'own.F' calls itself", MSRT_X MSRT_CALL MSRT_Y,
     MSRT_OWN MSRT_FUNCTION("F", "node { domain: 'own' op_type: 'G' input: 'a' output: 'b' }")
         MSRT_FUNCTION("G", "node { domain: 'own' op_type: 'F' input: 'a' output: 'b' }")},
    {"FunctionCallsItselfInABranch", "function 'own.F' calls itself",
     MSRT_C MSRT_X MSRT_CALL MSRT_Y,
     MSRT_OWN MSRT_FUNCTION("F",
                            "node { op_type: 'Constant' output: 'k' attribute { name: 'value' "
                            "type: TENSOR t { data_type: 9 int32_data: 1 } } } "
                            "node { op_type: 'If' input: 'k' output: 'b' attribute { name: "
                            "'then_branch' type: GRAPH g { node { domain: 'own' op_type: 'F' "
                            "input: 'a' output: 'r' } output { name: 'r' } } } "
                            "attribute { name: 'else_branch' type: GRAPH g { node { op_type: 'Neg' "
                            "input: 'a' output: 's' } output { name: 's' } } } }")},
    {"FunctionTwice", "function 'own.F' is there twice", MSRT_X MSRT_CALL MSRT_Y,
     MSRT_OWN MSRT_FUNCTION("F", "node { op_type: 'Neg' input: 'a' output: 'b' }")
         MSRT_FUNCTION("F", "node { op_type: 'Abs' input: 'a' output: 'b' }")},
    {"FunctionWithoutItsOutput", "output 'b' of function 'F' is made by no node",
     MSRT_X MSRT_CALL MSRT_Y, MSRT_OWN MSRT_FUNCTION("F", "")},
    {"FunctionReadsNothing", "input 'q' is made by no node", MSRT_X MSRT_CALL MSRT_Y,
     MSRT_OWN MSRT_FUNCTION("F", "node { op_type: 'Neg' input: 'q' output: 'b' }")},
    {"FunctionSeesNoOuterNames", "input 'x' is made by no node", MSRT_X MSRT_CALL MSRT_Y,
     MSRT_OWN MSRT_FUNCTION("F", "node { op_type: 'Neg' input: 'x' output: 'b' }")},
    {"FunctionGetsTooMuch", "function takes 1 inputs, gets 2",
     MSRT_X
     "node { name: 'call' domain: 'own' op_type: 'F' input: 'x' input: 'x' output: 'y' }" MSRT_Y,
     MSRT_OWN MSRT_FUNCTION("F", "node { op_type: 'Neg' input: 'a' output: 'b' }")},
    {"FunctionGivesTooLittle", "function gives 1 outputs",
     MSRT_X
     "node { name: 'call' domain: 'own' op_type: 'F' input: 'x' output: 'y' output: 'z' }" MSRT_Y,
     MSRT_OWN MSRT_FUNCTION("F", "node { op_type: 'Neg' input: 'a' output: 'b' }")},
    {"FunctionThatIsNotThere", "the op is not known", MSRT_X MSRT_CALL MSRT_Y, MSRT_OWN},
    // Sequences and optionals.
    {"SequenceAtOfATensor", "'at'",
     MSRT_X "initializer { name: 'i' data_type: 7 int64_data: 0 } node { name: 'at' op_type: "
            "'SequenceAt' input: 'x' input: 'i' output: "
            "'y' }" MSRT_Y},
    {"SequenceOfTwoTypes", "'make'",
     MSRT_X MSRT_C "node { name: 'make' op_type: 'SequenceConstruct' input: 'x' input: 'c' output: "
                   "'l' } node { op_type: 'SequenceLength' "
                   "input: 'l' output: 'y' }" MSRT_Y},
    {"SequenceMapOfATensor", "'map'",
     MSRT_X "node { name: 'map' op_type: 'SequenceMap' input: 'x' output: 'l' attribute { name: "
            "'body' type: GRAPH g { input { name: 'e' } node { "
            "op_type: 'Neg' input: 'e' output: 'r' } output { name: 'r' } } } } node { op_type: "
            "'SequenceLength' input: 'l' output: 'y' }" MSRT_Y},
    {"SequenceMapThatGivesNothing", "'map'",
     "input { name: 's' type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } } } "
     "node { name: 'map' op_type: 'SequenceMap' "
     "input: 's' output: 'l' attribute { name: 'body' type: GRAPH g { input { name: 'e' } } } } "
     "node { op_type: 'SequenceLength' input: "
     "'l' output: 'y' }" MSRT_Y},
    {"OptionalOfNothing", "has neither an input nor a type",
     MSRT_X "node { name: 'o' op_type: 'Optional' output: 'z' } node { op_type: "
            "'OptionalHasElement' input: 'z' output: 'y' }" MSRT_Y},
    {"ElementOfNothing", "input 0 is missing",
     MSRT_X "node { name: 'o' op_type: 'OptionalGetElement' output: 'y' }" MSRT_Y},
    {"OptionalWithoutOutput", "it has no outputs",
     MSRT_X "node { name: 'o' op_type: 'OptionalHasElement' input: 'x' } node { op_type: 'Neg' "
            "input: 'x' output: 'y' }" MSRT_Y},
};

}  // namespace

std::span<const BadOnnx> BadControl() { return kBadControl; }

}  // namespace msrt::testing
