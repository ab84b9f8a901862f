/**
 * A server's certificate and its private key: read, and judged before they are used.
 *
 * The platform's TLS takes any text as a certificate and fails at the first handshake. So the pair is checked here, and
 * whoever runs the service learns at the start which file is wrong.
 *
 * @module
 */

import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";

/** The two files of a pair, as a mounted Secret of type `kubernetes.io/tls` has them. */
export interface CertificateFiles {
  /** PEM: the server's certificate first, then those that link it to the authority. */
  readonly certFile: string;
  /** PEM: the private key, not encrypted. */
  readonly keyFile: string;
}

/** The text of the two files. */
export interface CertificateTexts {
  readonly certPem: string;
  readonly keyPem: string;
}

/** A pair that was checked. */
export interface CertificatePair extends CertificateTexts {
  /** The end of the certificate's validity, in milliseconds since 1970. */
  readonly notAfterMs: number;
}

/** What is wrong with a pair. */
export type CertificateProblem =
  | "unreadable"
  | "not_a_certificate"
  | "not_a_key"
  | "unsupported_key"
  | "key_mismatch"
  | "expired"
  | "not_yet_valid";

/** A pair cannot be used. Its text names the file, and holds nothing of what is in it. */
export class CertificateError extends Error {
  override readonly name = "CertificateError";
  /** The file that is wrong. */
  readonly file: string;
  /** What is wrong with it. */
  readonly problem: CertificateProblem;

  constructor(file: string, problem: CertificateProblem, reason: string) {
    super(`Cannot serve TLS with '${file}' as ${reason}`);
    this.file = file;
    this.problem = problem;
  }
}

/** Elliptic curves with which a handshake succeeds. */
const SUPPORTED_CURVES: readonly string[] = ["prime256v1", "secp384r1", "secp521r1"];

/** Below this the platform refuses an RSA key. */
const MIN_RSA_BITS = 2048;

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** How often a pair is read until it is the same twice. */
const MAX_READS = 3;

/**
 * Reads the two files of a pair.
 *
 * @throws {CertificateError} `unreadable`.
 */
export async function readCertificate(files: CertificateFiles): Promise<CertificateTexts> {
  let certPem = await readText(files.certFile);
  for (let read = 1;; read++) {
    const keyPem = await readText(files.keyFile);
    // A Secret is swapped as a whole. A certificate that is the same before and after the key was read belongs to it.
    const again = await readText(files.certFile);
    if (again === certPem || read === MAX_READS) return { certPem: again, keyPem };
    certPem = again;
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await Deno.readTextFile(file);
  } catch (error) {
    const missing = error instanceof Deno.errors.NotFound;
    throw new CertificateError(
      file,
      "unreadable",
      missing
        ? "there is no such file"
        : "it cannot be read: give a file that this process may read",
    );
  }
}

/**
 * Judges a pair: both parse, the key can serve and belongs to the certificate, and the certificate is valid now.
 *
 * @param files Their names, for the error.
 * @param texts What is in them.
 * @param nowMs Wall time in milliseconds since 1970. A certificate's validity is a matter of wall time: its clients judge
 * it by theirs.
 * @throws {CertificateError} Every problem but `unreadable`.
 */
export function checkCertificate(
  files: CertificateFiles,
  texts: CertificateTexts,
  nowMs: number,
): CertificatePair {
  const { certFile, keyFile } = files;
  const certificate = parseChain(certFile, texts.certPem);
  const key = parseKey(keyFile, texts.keyPem);
  if (!certificate.checkPrivateKey(key)) {
    throw new CertificateError(
      keyFile,
      "key_mismatch",
      `it is not the private key of the certificate in '${certFile}': give the key that the certificate was made for`,
    );
  }
  const notBeforeMs = Date.parse(certificate.validFrom);
  const notAfterMs = Date.parse(certificate.validTo);
  if (nowMs < notBeforeMs) {
    throw new CertificateError(
      certFile,
      "not_yet_valid",
      `the certificate is valid only from ${isoTime(notBeforeMs)}: it is ${isoTime(nowMs)} here`,
    );
  }
  if (nowMs > notAfterMs) {
    throw new CertificateError(
      certFile,
      "expired",
      `the certificate expired at ${isoTime(notAfterMs)}: give one that is valid now`,
    );
  }
  return { ...texts, notAfterMs };
}

/** Parses every certificate of the file, for one bad link breaks the chain, and gives the server's own. */
function parseChain(certFile: string, certPem: string): X509Certificate {
  const fail = () =>
    new CertificateError(
      certFile,
      "not_a_certificate",
      "it does not hold a certificate: give a PEM file with BEGIN CERTIFICATE",
    );
  try {
    const chain = certPem.match(PEM_CERTIFICATE) ?? [];
    const [server] = chain.map((pem) => new X509Certificate(pem));
    if (server !== undefined) return server;
  } catch {
    // The parser's text may quote the file.
    throw fail();
  }
  throw fail();
}

function parseKey(keyFile: string, keyPem: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(keyPem);
  } catch {
    throw new CertificateError(
      keyFile,
      "not_a_key",
      "it does not hold a private key: give a PEM file with BEGIN PRIVATE KEY, not encrypted",
    );
  }
  if (!canServe(key)) {
    throw new CertificateError(
      keyFile,
      "unsupported_key",
      `its kind of key is not supported: give RSA of ${MIN_RSA_BITS} bits or more, ECDSA on P-256, P-384 or P-521, ` +
        "or Ed25519",
    );
  }
  return key;
}

function canServe(key: KeyObject): boolean {
  switch (key.asymmetricKeyType) {
    case "rsa":
      return (key.asymmetricKeyDetails?.modulusLength ?? 0) >= MIN_RSA_BITS;
    case "ec":
      return SUPPORTED_CURVES.includes(key.asymmetricKeyDetails?.namedCurve ?? "");
    default:
      return key.asymmetricKeyType === "ed25519";
  }
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
