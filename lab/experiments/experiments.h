// All experiments, in the order of docs/lab.md: by paper, then in the order of the paper.
#ifndef PHIMAP_LAB_EXPERIMENTS_EXPERIMENTS_H_
#define PHIMAP_LAB_EXPERIMENTS_EXPERIMENTS_H_

#include <vector>

#include "lab/experiment.h"

namespace phimap::lab {

std::vector<Experiment> AllExperiments();

// Each experiment has its own file, experiments/NAME.cc.
Experiment BbvTheorems();
Experiment BbvFigure1();
Experiment BbvTable1();
Experiment BbvTable2();
Experiment BbvLiteralTables();
Experiment BsFigure1();
Experiment AmsNorms();
Experiment AmsAngles();
Experiment AmsRounding();
Experiment AmsProjectedKernel();
Experiment ShFigure1();
Experiment ShFigure2();
Experiment ShFigure3();
Experiment ShFigure4();
Experiment CoDemonstration();
Experiment CoCosts();
Experiment CoTakeaway();
Experiment CoFourier();
Experiment VerdictsOfCertificates();
// Not among AllExperiments() until the results of a full run, a quarter of an hour on two idle
// cores, are committed.
Experiment IntervalsOfCertificates();

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_EXPERIMENTS_H_
