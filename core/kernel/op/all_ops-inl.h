// Every operation, one family a file: a new one is its file, a line here, and its code in
// kernel_op.h. Included plainly it gives the facts, and in a file that Highway compiles once for
// each target the bodies too.
#include "core/kernel/op/arithmetic-inl.h"
#include "core/kernel/op/cosine-inl.h"
#include "core/kernel/op/exponential-inl.h"
#include "core/kernel/op/logarithm-inl.h"
#include "core/kernel/op/matern-inl.h"
#include "core/kernel/op/operand-inl.h"
#include "core/kernel/op/root-inl.h"
#include "core/kernel/op/tanh-inl.h"
#include "core/kernel/op/turns-inl.h"
