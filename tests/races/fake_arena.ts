/**
 * Two services in this process over one cluster in memory. Calls of both come in an order that the seed decides, so that
 * each run shows other interleavings, and the same seed the same ones.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { Registry } from "prom-client";
import { GroupLoop } from "../../lib/controllers/group_loop.ts";
import { ControllerMetrics } from "../../lib/controllers/metrics.ts";
import { RevocationController } from "../../lib/controllers/revocation.ts";
import { RewindGuard } from "../../lib/controllers/rewind_guard.ts";
import { createLogger } from "../../lib/host/log.ts";
import type { SendRequest } from "../../lib/kube/exchange.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { plannerOf } from "../controllers/planned_rig.ts";
import { InProcessService, NAMESPACE, seedCluster } from "../service/in_process.ts";
import { Arena } from "./arena.ts";
import { LeaseHistory } from "./lease_history.ts";

/** The most turns of the event loop that a call waits for on its way. */
const USUAL_WAY = 4;
/** As for some: so long that other requests run from beginning to end meanwhile. */
const LONG_WAY = 60;
const LONG_WAYS = 0.08;

/** An arena in memory. */
export interface FakeArena extends AsyncDisposable {
  readonly arena: Arena;
  readonly fake: FakeCluster;
  readonly clock: TestClock;
  readonly services: readonly [InProcessService, InProcessService];
  /** The user under which the services call: faults that name it spare the operator. */
  readonly user: string;
}

/** Opens an arena. */
export async function openFakeArena(seed: number): Promise<FakeArena> {
  await using stack = new AsyncDisposableStack();
  const clock = new TestClock();
  const entropy = seededEntropy(seed);
  const fake = stack.use(new FakeCluster({ clock, entropy }));
  seedCluster(fake);
  const turns = async () => {
    const longest = entropy.fraction() < LONG_WAYS ? LONG_WAY : USUAL_WAY;
    const count = Math.floor(entropy.fraction() * longest);
    for (let turn = 0; turn < count; turn++) await nextTurn();
  };
  const user = "holdfast";
  const token = fake.userToken(user, ["system:masters"]);
  const wandering = (send: SendRequest): SendRequest => async (request) => {
    await turns();
    const copy = new Request(request);
    copy.headers.set("authorization", `Bearer ${token}`);
    const answer = await send(copy);
    await turns();
    return answer;
  };
  const [first, second] = [1, 2].map((index) =>
    stack.use(new InProcessService({ fake, clock, seed: seed * 2 + index, send: wandering }))
  );
  const planners = ["first operator", "second operator"].map((by, index) => {
    const parts = { fake, clock, seed: seed * 2 + index + 3, send: wandering };
    return plannerOf(stack.use(new InProcessService(parts)), by);
  });
  const [one, other] = planners;
  const operator = stack.use(new InProcessService({ fake, clock, seed: -seed }));
  if (first === undefined || second === undefined || one === undefined || other === undefined) {
    throw new Error("Cannot race alone");
  }
  for (const service of [first, second]) stack.use(startRevoking(service));
  const history = stack.use(await LeaseHistory.start(operator.api, NAMESPACE));
  const arena = new Arena({
    api: operator.api,
    namespace: NAMESPACE,
    clients: [first.client(), second.client()],
    planners: [one, other],
    history,
    pause: async () => {
      for (let times = Math.floor(entropy.fraction() * 8); times > 0; times--) await turns();
    },
    nowMs: () => clock.wall(),
    random: () => entropy.fraction(),
  });
  const owned = stack.move();
  return {
    arena,
    fake,
    clock,
    services: [first, second],
    user,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/**
 * What a leader does beside its requests: it completes revocations that are asked for by annotation, and takes the annotation
 * off.
 */
function startRevoking({ api, parts, coordinator, clock }: InProcessService): AsyncDisposable {
  const guard = new RewindGuard(api);
  const { adoption } = coordinator;
  const loop = new GroupLoop({
    api: guard,
    coordinator: parts,
    controllers: [new RevocationController({ api: guard, adoption })],
    logger: createLogger({ write: () => {}, clock }),
    metrics: new ControllerMetrics(new Registry()),
    rewinds: guard,
  });
  const term = new AbortController();
  const running = loop.run({ signal: term.signal });
  return {
    async [Symbol.asyncDispose]() {
      term.abort();
      await running;
    },
  };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
