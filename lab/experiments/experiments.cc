#include "lab/experiments/experiments.h"

namespace phimap::lab {

std::vector<Experiment> AllExperiments() {
  return {
      // Balcan, Blum, Vempala 2006
      BbvTheorems(),
      BbvFigure1(),
      BbvTable1(),
      BbvTable2(),
      BbvLiteralTables(),
      // Blum 2005
      BsFigure1(),
      // Achlioptas, McSherry, Schölkopf 2001
      AmsNorms(),
      AmsAngles(),
      AmsRounding(),
      AmsProjectedKernel(),
      // Shi, Shen, Hill, van den Hengel 2012
      ShFigure1(),
      ShFigure2(),
      ShFigure3(),
      ShFigure4(),
      // Cornell lecture notes on kernels
      CoDemonstration(),
      CoCosts(),
      CoTakeaway(),
      CoFourier(),
      // Phimap
      VerdictsOfCertificates(),
      IntervalsOfCertificates(),
  };
}

}  // namespace phimap::lab
