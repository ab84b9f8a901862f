import assert from "node:assert/strict";
import fc from "fast-check";
import { scrub } from "../../lib/kube/scrub.ts";

Deno.test("secrets are hidden, and what is around them stays", () => {
  const cases = {
    "https://user:pass@host:6443/api failed": "https://***@host:6443/api failed",
    "http://user:p@ss/w@ord@proxy:3128": "http://***@proxy:3128",
    "dial user:pass@host:1  refused": "dial ***@host:1  refused",
    "mail admin@example.com please": "mail admin@example.com please",
    "https://[::1]:6443/api": "https://[::1]:6443/api",
    "GET /x?token=abc&y=1 failed": "GET /x?token=***&y=1 failed",
    'GET "/x?access_token=abc" failed': 'GET "/x?access_token=***" failed',
    "a?PASSWORD=x&Secret=y&api_key=z": "a?PASSWORD=***&Secret=***&api_key=***",
    'password="two words" end': "password=*** end",
    "Authorization: Bearer abc.def end": "Authorization: Bearer *** end",
    "bearer\tabc\nBASIC abc": "bearer\t***\nBASIC ***",
    "'Bearer abc'": "'Bearer ***",
    "Bearer Bearer abc": "Bearer *** ***",
    "Bearer:abc": "Bearer:***",
    "Bearer%20abc": "Bearer%20***",
    "token=Bearer abc": "token=*** ***",
    '{"access_token": "abc", "x": 1}': '{"access_token": "***", "x": 1}',
    "jwt eyJhbGciOi.eyJpc3Mi.c2ln end": "jwt *** end",
    "": "",
    "nothing to hide": "nothing to hide",
  };
  for (const [text, expected] of Object.entries(cases)) assert.equal(scrub(text), expected);
});

/** A secret that no other part of a text holds by chance. */
const secret = fc.stringMatching(/^[A-Za-z0-9_.~+/@:=-]{0,20}$/).map((text) => `S3CR3T${text}`);
const word = fc.stringMatching(/^[a-z0-9:@/?&="'.,-]{0,12}$/);
const space = fc.stringMatching(/^[ \t\n]{1,3}$/);

const hidingPlaces: Record<string, (secret: string) => string> = {
  "the password of a URL": (value) => `https://user:${value}@host:6443/path`,
  "the user of a URL": (value) => `http://${value}@proxy`,
  "a password without a scheme": (value) => `user:${value}@host`,
  "a token parameter": (value) => `/watch?x=1&token=${value}`,
  "an access_token parameter": (value) => `"https://h/?ACCESS_TOKEN=${value}"`,
  "a password parameter": (value) => `password=${value}`,
  "a quoted parameter": (value) => `secret="${value} ${value}"`,
  "an api_key parameter": (value) => `x?Api_Key='${value}'`,
  "a bearer token": (value) => `Bearer ${value}`,
  "a bearer token in any case": (value) => `"bEaReR\t${value}"`,
  "basic credentials": (value) => `Authorization:Basic  ${value}`,
  "a member of JSON": (value) => `{"refresh_token" : "${value}"}`,
};

for (const [place, hide] of Object.entries(hidingPlaces)) {
  Deno.test(`no secret survives as ${place}, whatever is around it`, () => {
    fc.assert(fc.property(word, space, secret, space, word, (before, gap, value, end, after) => {
      assert.doesNotMatch(scrub(`${before}${gap}${hide(value)}${end}${after}`), /S3CR3T/);
    }));
  });
}

Deno.test("the spaces of a text are kept, and to scrub twice changes nothing", () => {
  fc.assert(fc.property(fc.array(fc.tuple(word, space)), (parts) => {
    const text = parts.flat().join("");
    const once = scrub(text);
    assert.equal(scrub(once), once);
    if (!/["']/.test(text)) assert.deepEqual(once.match(/\s+/g), text.match(/\s+/g));
  }));
});
