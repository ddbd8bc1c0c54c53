// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Somebody who does everything right, for the time that others do not.
#include "stress.hpp"

namespace stress {
namespace {

TEST(Victim, Traffic)
{
	verbs::Pair pair;
	verbs::Bench bench(pair, 1 << 17, 1);

	for (Rounds round("Victim.Traffic"); round.next();) {
		for (int i = 0; i < 10 && !testing::Test::HasFailure(); i++) {
			verbs::Shape shape;

			shape.op =
				verbs::kAllOps[pick(round.rng, 0, std::size(verbs::kAllOps) - 1)];
			shape.length = pick(round.rng, 0, i ? 5000 : 1 << 17);
			bench.run(shape);
		}
	}
}

} // namespace
} // namespace stress
