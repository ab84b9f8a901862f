import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fc from "fast-check";
import {
  decideVersion,
  decodeBase64,
  isKept,
  KEPT_VERSIONS,
  type KeyringVersion,
  MAX_KEYRING_BYTES,
  outdated,
  readPayload,
  storedDigest,
} from "../../lib/escrow/keyring.ts";

const digestOf = (bytes: Uint8Array) =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

const versions: fc.Arbitrary<KeyringVersion[]> = fc.uniqueArray(
  fc.record({
    version: fc.integer({ min: 1, max: 30 }),
    digest: fc.constantFrom("a", "b", "c", null),
    lasting: fc.boolean(),
  }),
  { selector: ({ version }) => version, maxLength: 12 },
).map((found) => found.map((one) => ({ ...one, uid: `uid-${one.version}` })));

Deno.test("any bytes up to 256 KiB come back with their digest, however the base64 is broken into lines", () => {
  fc.assert(fc.property(fc.uint8Array({ minLength: 1, maxLength: 400 }), (bytes) => {
    const text = btoa(String.fromCharCode(...bytes));
    const broken = text.replace(/.{1,76}/g, "$&\r\n");
    const expected = { type: "ok", keyring: text, digest: digestOf(bytes) };
    assert.deepEqual(readPayload(broken, ""), expected);
    assert.deepEqual(readPayload(text, expected.digest), expected);
    assert.deepEqual(readPayload(text, expected.digest.slice(7).toUpperCase()), expected);
    assert.equal(storedDigest(text), expected.digest);
    assert.deepEqual(decodeBase64(text), bytes);
  }));
});

Deno.test("what is no standard, padded base64 is refused and never thrown", () => {
  for (const text of ["a", "abc", "====", "ab=c", "a===", "ab-_", "abcd=", "äöüß", "ab cd==="]) {
    assert.deepEqual(readPayload(text, ""), { type: "not_base64" });
    assert.equal(storedDigest(text), null);
  }
  fc.assert(fc.property(fc.string(), fc.string(), (text, digest) => {
    assert(
      ["ok", "not_base64", "empty", "digest_mismatch"].includes(readPayload(text, digest).type),
    );
  }));
});

Deno.test("an empty keyring, one over 256 KiB, and a wrong digest are told apart", () => {
  assert.deepEqual(readPayload("\r\n", ""), { type: "empty" });
  const whole = "A".repeat(Math.ceil(MAX_KEYRING_BYTES / 3) * 4);
  assert.deepEqual(readPayload(`${whole}AAAA`, ""), { type: "too_large" });
  assert.equal(readPayload(btoa("x".repeat(MAX_KEYRING_BYTES)), "").type, "ok");
  assert.deepEqual(readPayload(btoa("x"), digestOf(new Uint8Array([1]))), {
    type: "digest_mismatch",
  });
  assert.deepEqual(readPayload(btoa("x"), "sha256:"), { type: "digest_mismatch" });
});

Deno.test("a keyring that the newest version holds is stored already; any other gets a number above all", () => {
  fc.assert(fc.property(versions, fc.constantFrom("a", "b"), fc.nat(40), (list, digest, taken) => {
    const newest = list.toSorted((a, b) => b.version - a.version)[0];
    const decision = decideVersion(list, digest, taken);
    if (newest?.lasting && newest.digest === digest) {
      assert.deepEqual(decision, { type: "stored", version: newest.version });
    } else {
      assert.equal(decision.type, "create");
      assert(list.every(({ version }) => version < decision.version));
      assert(decision.version > taken);
    }
  }));
});

Deno.test("five versions stay, the newest that the group controls, and whatever goes is older than all that stay", () => {
  fc.assert(fc.property(versions, (list) => {
    const gone = outdated(list);
    const lasting = list.filter((one) => one.lasting);
    const staying = lasting.filter((one) => !gone.includes(one));
    assert.equal(staying.length, Math.min(KEPT_VERSIONS, lasting.length));
    assert(gone.every((one) => one.lasting));
    assert(gone.every((old) => staying.every((kept) => old.version < kept.version)));
    for (const one of list) assert.equal(isKept(list, one.uid), staying.includes(one));
    assert.equal(isKept(list, "nobody"), false);
  }));
});

Deno.test("what an old list lets go, every later list lets go too: a stale look removes nothing that is needed", () => {
  fc.assert(fc.property(versions, versions, (early, more) => {
    const newest = Math.max(0, ...early.map(({ version }) => version));
    const later = [
      ...early,
      ...more.map((one) => ({
        ...one,
        version: one.version + newest,
        uid: `later-${one.version}`,
      })),
    ];
    const goneLater = new Set(outdated(later).map(({ uid }) => uid));
    assert(outdated(early).every(({ uid }) => goneLater.has(uid)));
  }));
});
