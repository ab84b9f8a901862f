import assert from "node:assert/strict";
import {
  giveBackPermissions,
  kubeconfigPaths,
  kubeconfigUser,
  noProxyFor,
  type PermissionKind,
  permissionsToGiveBack,
  usesExecPlugin,
} from "../../../handlers/commands/bootstrap.ts";

Deno.test("each command gives back what it does not need, the most harmful first", () => {
  const table: readonly (readonly [string | undefined, readonly PermissionKind[]])[] = [
    ["serve", ["run", "write", "ffi", "sys"]],
    ["demo", ["run", "ffi", "sys"]],
    ["run", ["ffi", "sys"]],
    ["run-guard", ["ffi", "sys"]],
    ["status", ["run", "write", "ffi", "sys"]],
    ["revoke", ["run", "write", "ffi", "sys"]],
    ["manifests", ["run", "ffi", "sys"]],
    ["config", ["run", "write", "ffi", "sys", "net"]],
    ["--help", ["run", "write", "ffi", "sys", "net"]],
    ["constructor", ["run", "write", "ffi", "sys", "net"]],
    [undefined, ["run", "write", "ffi", "sys", "net"]],
  ];
  for (const [command, kinds] of table) assert.deepEqual(permissionsToGiveBack(command), kinds);
});

Deno.test("the API server of the pod is added to the hosts that need no proxy", () => {
  const KUBERNETES_SERVICE_HOST = "10.0.0.1";
  assert.equal(noProxyFor("serve", {}), undefined);
  assert.equal(noProxyFor("serve", { NO_PROXY: "a", KUBERNETES_SERVICE_HOST: "" }), undefined);
  assert.equal(noProxyFor("serve", { KUBERNETES_SERVICE_HOST }), "10.0.0.1");
  assert.equal(
    noProxyFor("serve", { KUBERNETES_SERVICE_HOST, NO_PROXY: "a, b,," }),
    "a,b,10.0.0.1",
  );
  assert.equal(
    noProxyFor("serve", { KUBERNETES_SERVICE_HOST, NO_PROXY: "10.0.0.1,a" }),
    "10.0.0.1,a",
  );
});

Deno.test("of the two spellings of NO_PROXY the one counts that the HTTP client reads", () => {
  const KUBERNETES_SERVICE_HOST = "fd00::1";
  assert.equal(noProxyFor("serve", { KUBERNETES_SERVICE_HOST, no_proxy: "b" }), "b,fd00::1");
  assert.equal(
    noProxyFor("serve", { KUBERNETES_SERVICE_HOST, NO_PROXY: "a", no_proxy: "b" }),
    "a,fd00::1",
  );
  assert.equal(
    noProxyFor("serve", { KUBERNETES_SERVICE_HOST, NO_PROXY: "", no_proxy: "b" }),
    "fd00::1",
  );
});

Deno.test("the demo reaches its own API server past every proxy, and names no other host", () => {
  assert.equal(noProxyFor("demo", {}), "127.0.0.1");
  assert.equal(noProxyFor("demo", { NO_PROXY: "a", KUBERNETES_SERVICE_HOST: "b" }), "a,127.0.0.1");
  assert.equal(noProxyFor(undefined, { NO_PROXY: "a" }), undefined);
});

Deno.test("the kubeconfig files are those of KUBECONFIG, else that of the home folder", () => {
  assert.deepEqual(kubeconfigPaths({ KUBECONFIG: "/a::/b", HOME: "/h" }), ["/a", "/b"]);
  assert.deepEqual(kubeconfigPaths({ KUBECONFIG: "", HOME: "/h" }), ["/h/.kube/config"]);
  assert.deepEqual(kubeconfigPaths({ HOME: "" }), []);
  assert.deepEqual(kubeconfigPaths({}), []);
});

const EXEC = `
current-context: one
contexts:
  - {name: one, context: {user: alice, cluster: k}}
  - {name: two, context: {user: bob, cluster: k}}
users:
  - {name: alice, user: {exec: {command: aws, apiVersion: v1}}}
  - {name: bob, user: {token: x}}
`;

Deno.test("a kubeconfig signs in by a program when the user of its current context does", () => {
  assert.equal(usesExecPlugin([EXEC]), true);
  assert.equal(usesExecPlugin([EXEC.replace("context: one", "context: two")]), false);
  assert.equal(usesExecPlugin([EXEC.replace("context: one", "context: none")]), false);
  assert.equal(usesExecPlugin([EXEC.replace(/exec: \{.*?\}/, "exec: null")]), false);
});

Deno.test("of several kubeconfig files the first that has a name counts", () => {
  assert.equal(usesExecPlugin(["current-context: two", EXEC]), false);
  assert.equal(usesExecPlugin(["users: [{name: alice, user: {token: x}}]", EXEC]), false);
  assert.equal(usesExecPlugin(["contexts: [{name: one, context: {user: bob}}]", EXEC]), false);
  assert.equal(usesExecPlugin(["users: [{name: carol, user: }]", EXEC]), true);
});

Deno.test("a kubeconfig that is none counts as empty", () => {
  for (const text of ["", "- a", "x: [", "users: 5", "contexts: [{}]"]) {
    assert.equal(usesExecPlugin([text]), false, text);
    assert.equal(usesExecPlugin([text, EXEC]), true, text);
  }
});

Deno.test("a kubeconfig names the user of its current context", () => {
  assert.equal(kubeconfigUser([EXEC]), "alice");
  assert.equal(kubeconfigUser(["current-context: two", EXEC]), "bob");
  assert.equal(kubeconfigUser([]), undefined);
  assert.equal(kubeconfigUser(["- a", "current-context: none"]), undefined);
});

/** Gives permissions back on a machine whose only kubeconfig is this text, or cannot be read. */
function giveBack(command: string, held: readonly PermissionKind[], kubeconfig?: string) {
  const given: PermissionKind[] = [];
  const warnings: string[] = [];
  giveBackPermissions({
    command,
    env: { KUBECONFIG: "/missing:/config" },
    permissions: { has: (kind) => held.includes(kind), giveBack: (kind) => void given.push(kind) },
    readTextFile: (path) => {
      if (path === "/missing") return undefined;
      if (kubeconfig === undefined) throw new Error("Not readable");
      return kubeconfig;
    },
    warn: (message) => void warnings.push(message),
  });
  return { given, warnings };
}

Deno.test("what signs in to a cluster by a program keeps the permission to run it, and warns", () => {
  for (const command of ["serve", "status", "revoke"]) {
    assert.deepEqual(giveBack(command, ["run"], EXEC), {
      given: ["write", "ffi", "sys"],
      warnings: [
        "The kubeconfig signs in by running a program, so this process keeps the permission to run programs",
      ],
    });
  }
});

Deno.test("serve says nothing of programs when it has no permission to run them, or needs none", () => {
  const all = { given: ["run", "write", "ffi", "sys"], warnings: [] };
  assert.deepEqual(giveBack("serve", [], EXEC), all);
  assert.deepEqual(giveBack("serve", ["run"], "users: []"), all);
  assert.deepEqual(giveBack("serve", ["run"]), all);
});

Deno.test("no other command keeps the permission to run programs", () => {
  assert.deepEqual(giveBack("demo", ["run"], EXEC), { given: ["run", "ffi", "sys"], warnings: [] });
});
