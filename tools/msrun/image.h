// The verb 'image' of msrun: a model over an image of any size.
#pragma once

namespace msrt {

// Runs 'msrun image ...'; argv[0] is "image". Returns the exit code.
int RunImage(int argc, char** argv);

}  // namespace msrt
