import assert from "node:assert/strict";
import fc from "fast-check";
import {
  candidatesIn,
  chosenFrom,
  failedIn,
  minorsWithout,
  moduleFile,
  stagingVersion,
} from "./choice.ts";
import { filesOf, SUITES } from "./suites.ts";

const LISTED =
  "k8s.io/kubernetes v1.9.0 v1.31.9 v1.37.2 v1.32.13 v1.32.2 v1.34.0-alpha.1 v1.36.3 v1.38.0";

Deno.test("candidates are the stable versions of 1.32 to 1.37, oldest first, with numbers that count as numbers", () => {
  assert.deepEqual(candidatesIn(LISTED), ["v1.32.2", "v1.32.13", "v1.36.3", "v1.37.2"]);
  assert.deepEqual(candidatesIn(""), []);
  const patches = fc.uniqueArray(fc.nat(40), { minLength: 1 });
  fc.assert(fc.property(patches, (found) => {
    const sorted = candidatesIn(found.map((patch) => `v1.33.${patch}`).join(" "));
    assert.deepEqual(sorted, found.toSorted((a, b) => a - b).map((patch) => `v1.33.${patch}`));
  }));
});

Deno.test("a minor version without a candidate is named", () => {
  assert.deepEqual(minorsWithout(candidatesIn(LISTED)), [33, 34, 35]);
});

Deno.test("a version may be asked for whole, or by its minor number for the newest patch; another is refused", () => {
  const candidates = candidatesIn(LISTED);
  const wishes = ["v1.32.2", "1.36.3", "1.32", "v1.37"];
  assert.deepEqual(chosenFrom(candidates, wishes), ["v1.32.2", "v1.36.3", "v1.32.13", "v1.37.2"]);
  assert.throws(() => chosenFrom(candidates, ["1.33"]), /Cannot test '1.33'/);
  assert.throws(() => chosenFrom([], ["1.3"]), /: none/);
  assert.throws(() => chosenFrom(candidates, ["1.3"]), RangeError);
});

const GO_MOD = `module k8s.io/kubernetes

go 1.23.0

godebug default=go1.23

require (
	github.com/spf13/cobra v1.8.1
	k8s.io/api v0.0.0
)

require (
	golang.org/x/sys v0.26.0 // indirect
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/client-go => ./staging/src/k8s.io/client-go
)
`;

Deno.test("the module of a version requires what that version requires, and has its staging modules from their releases", () => {
  assert.equal(stagingVersion("v1.32.13"), "v0.32.13");
  assert.equal(
    moduleFile(GO_MOD, "v1.32.2"),
    `module holdfast.test/kubernetes
go 1.23.0
require k8s.io/kubernetes v1.32.2
require (
	github.com/spf13/cobra v1.8.1
	k8s.io/api v0.0.0
)
require (
	golang.org/x/sys v0.26.0 // indirect
)
replace (
	k8s.io/api => k8s.io/api v0.32.2
	k8s.io/client-go => k8s.io/client-go v0.32.2
)
`,
  );
  assert.throws(() => moduleFile("module x\n", "v1.32.2"), /Cannot build v1.32.2/);
  assert.throws(() => moduleFile("go 1.23\n", "v1.32.2"), RangeError);
});

Deno.test("the names of failed tests are read from what the runner writes, each once", () => {
  const output =
    "a ... ok (1ms)\nreal API server: b ... FAILED (2ms)\n\nreal API server: b ... FAILED\n";
  assert.deepEqual(failedIn(output), ["real API server: b"]);
  assert.deepEqual(failedIn("b ... \u001b[31mFAILED\u001b[0m (1s)"), ["b"]);
});

Deno.test("every suite has files, each of which uses a real API server", async () => {
  const files = await filesOf(SUITES);
  for (const [{ name }, paths] of files) assert(paths.length > 0, name);
  const all = [...files.values()].flat();
  for (
    const file of [
      "tests/kube_contract/kube_contract_test.ts",
      "tests/conformance/tls_cluster_test.ts",
    ]
  ) {
    assert(all.includes(file), file);
  }
  assert(!all.includes("tests/escrow/keyring_test.ts"));
});
