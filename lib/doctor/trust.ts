/**
 * Certificates, as far as the checks look at them. Nothing is read and nothing is sent here.
 *
 * @module
 */

import { createPrivateKey, X509Certificate } from "node:crypto";
import { checkServerIdentity } from "node:tls";

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** More than any sound chain has. */
const LONGEST_CHAIN = 10;

/** What is known of a certificate. */
export interface CertificateFacts {
  /** The names and addresses that it is for. */
  readonly names: readonly string[];
  /** Whose it is, as it says itself: a common name, or all of the name in one line. */
  readonly subject: string;
  /** Who signed it, likewise. */
  readonly issuer: string;
  /** Milliseconds since 1970. */
  readonly notBeforeMs: number;
  /** Milliseconds since 1970. */
  readonly notAfterMs: number;
}

/** The certificates of a PEM text, the first one first; those that cannot be read are left out. */
export function certificatesOf(pem: string): readonly X509Certificate[] {
  return (pem.match(PEM_CERTIFICATE) ?? []).flatMap((one) => readCertificate(one) ?? []);
}

/** Reads one certificate, PEM or DER; `null` when it is none. */
export function readCertificate(text: string | Uint8Array): X509Certificate | null {
  try {
    return new X509Certificate(text);
  } catch {
    return null;
  }
}

/** Looks at a certificate. */
export function certificateFacts(certificate: X509Certificate): CertificateFacts {
  const { subjectAltName = "", subject, issuer, validFrom, validTo } = certificate;
  return {
    names: subjectAltName.split(", ").map((name) => name.replace(/^(DNS|IP Address):/, ""))
      .filter((name) => name !== ""),
    subject: commonName(subject),
    issuer: commonName(issuer),
    notBeforeMs: Date.parse(validFrom),
    notAfterMs: Date.parse(validTo),
  };
}

function commonName(name: string): string {
  return /(?:^|\n)CN=(.*)/.exec(name)?.[1] ?? name.replaceAll("\n", ", ");
}

/**
 * True when a certificate is for this host: a name, or an address without brackets. As TLS has it, only alternative names
 * count, and not the common name.
 */
export function isFor(certificate: X509Certificate, host: string): boolean {
  const { subject, issuer, ...rest } = certificate.toLegacyObject();
  return checkServerIdentity(host, {
    ...rest,
    issuer,
    subject: { ...subject, CN: "" },
    subjectaltname: certificate.subjectAltName,
  }) === undefined;
}

/**
 * True when one of these authorities signed the chain: its first certificate, or one that signed that. Validity in time is
 * not looked at.
 *
 * @param chain The server's certificate first, then what it sent or mounts beside it, in any order.
 */
export function isSignedBy(
  chain: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): boolean {
  let current = chain[0];
  for (let depth = 0; current !== undefined && depth < LONGEST_CHAIN; depth++) {
    const below: X509Certificate = current;
    if (authorities.some((authority) => signed(below, authority))) return true;
    current = chain.find((above) =>
      above.fingerprint256 !== below.fingerprint256 && signed(below, above)
    );
  }
  return false;
}

function signed(below: X509Certificate, above: X509Certificate): boolean {
  try {
    return below.issuer === above.subject && below.verify(above.publicKey);
  } catch {
    return false;
  }
}

/** True when a private key in PEM form belongs to a certificate. */
export function keyBelongsTo(certificate: X509Certificate, keyPem: string): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(keyPem));
  } catch {
    return false;
  }
}
