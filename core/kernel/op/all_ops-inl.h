// Every operation, one family per file. To add one, add its file, a line here, and its code in
// kernel_parts.h. A plain include gives the facts; in a file that Highway compiles once per target,
// it gives the bodies too.
#include "core/kernel/op/arithmetic-inl.h"
#include "core/kernel/op/cosine-inl.h"
#include "core/kernel/op/exponential-inl.h"
#include "core/kernel/op/logarithm-inl.h"
#include "core/kernel/op/matern-inl.h"
#include "core/kernel/op/operand-inl.h"
#include "core/kernel/op/root-inl.h"
#include "core/kernel/op/tanh-inl.h"
#include "core/kernel/op/turns-inl.h"
