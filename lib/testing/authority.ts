/**
 * A throw-away certificate authority, so that tests and the demo speak verified TLS.
 *
 * @module
 */

// x509 needs the metadata API of decorators to be there before it.
import "reflect-metadata";
import * as x509 from "@peculiar/x509";

/** Milliseconds of one day. */
const DAY_MS = 86_400_000;

/** Certificates start to be valid this long before `nowMs`: the clocks of two machines differ. */
const BACKDATE_MS = 300_000;

const KEY_ALGORITHM = { name: "ECDSA", namedCurve: "P-256" };
const SIGNING_ALGORITHM = { name: "ECDSA", hash: "SHA-256" };

/** What {@linkcode createAuthority} takes. */
export interface AuthorityOptions {
  /** The Web Crypto of the platform: makes keys and signs. Give `crypto`. */
  readonly webCrypto: Crypto;
  /**
   * The wall time, in milliseconds since 1970, that certificates count from. TLS libraries compare it with the clock of
   * the machine: give `Date.now()`, not the time of a test clock.
   */
  readonly nowMs: number;
  /** The authority's own common name. @default {"holdfast-test-authority"} */
  readonly commonName?: string;
  /** Days from `nowMs` for which the authority is valid. @default {30} */
  readonly days?: number;
}

/** What a certificate is to say. */
export interface CertificateRequest {
  /** The DNS names of a server. */
  readonly dnsNames?: readonly string[];
  /** The IP addresses of a server, for example `127.0.0.1`. */
  readonly ipAddresses?: readonly string[];
  /** The subject's common name: the user name, for a client of Kubernetes. @default {"holdfast-test"} */
  readonly commonName?: string;
  /** The subject's organizations: the groups, for a client of Kubernetes. @default {[]} */
  readonly organizations?: readonly string[];
  /** The end of validity, in milliseconds since 1970: in the past for an expired certificate. It wins over `days`. */
  readonly notAfterMs?: number;
  /** Days from the authority's `nowMs` for which the certificate is valid. @default {30} */
  readonly days?: number;
  /** True for a certificate that a client shows; false for one of a server. @default {false} */
  readonly client?: boolean;
}

/** A certificate and its private key, as text in PEM form. */
export interface IssuedCertificate {
  readonly certPem: string;
  /** PKCS #8. */
  readonly keyPem: string;
}

/** A certificate authority that lives in memory. Its own key never leaves it. */
export interface Authority {
  /** The authority's certificate in PEM form: what a client trusts. */
  readonly caPem: string;
  /** Makes a key and a certificate for it. */
  issue(request: CertificateRequest): Promise<IssuedCertificate>;
}

/**
 * Makes a certificate authority.
 *
 * ```ts
 * const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
 * const { certPem, keyPem } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
 * ```
 */
export async function createAuthority(options: AuthorityOptions): Promise<Authority> {
  const { webCrypto, nowMs } = options;
  const authorityKeys = await generateKeys(webCrypto);
  const authorityEndMs = nowMs + (options.days ?? 30) * DAY_MS;
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    name: subject(options.commonName ?? "holdfast-test-authority", []),
    serialNumber: serialNumber(webCrypto),
    notBefore: new Date(nowMs - BACKDATE_MS),
    notAfter: new Date(authorityEndMs),
    signingAlgorithm: SIGNING_ALGORITHM,
    keys: authorityKeys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(authorityKeys.publicKey, false, webCrypto),
    ],
  }, webCrypto);

  async function issue(request: CertificateRequest): Promise<IssuedCertificate> {
    const keys = await generateKeys(webCrypto);
    const notAfterMs = request.notAfterMs ?? nowMs + (request.days ?? 30) * DAY_MS;
    const certificate = await x509.X509CertificateGenerator.create({
      subject: subject(request.commonName ?? "holdfast-test", request.organizations ?? []),
      issuer: root.subjectName,
      serialNumber: serialNumber(webCrypto),
      // An end in the past still needs a start before it.
      notBefore: new Date(Math.min(nowMs - BACKDATE_MS, notAfterMs - DAY_MS)),
      notAfter: new Date(notAfterMs),
      signingAlgorithm: SIGNING_ALGORITHM,
      publicKey: keys.publicKey,
      signingKey: authorityKeys.privateKey,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([
          request.client ? x509.ExtendedKeyUsage.clientAuth : x509.ExtendedKeyUsage.serverAuth,
        ]),
        await x509.AuthorityKeyIdentifierExtension.create(root, false, webCrypto),
        ...alternativeNames(request),
      ],
    }, webCrypto);
    const pkcs8 = await webCrypto.subtle.exportKey("pkcs8", keys.privateKey);
    return {
      certPem: certificate.toString("pem"),
      keyPem: x509.PemConverter.encode(pkcs8, x509.PemConverter.PrivateKeyTag),
    };
  }

  return { caPem: root.toString("pem"), issue };
}

async function generateKeys(webCrypto: Crypto): Promise<CryptoKeyPair> {
  return await webCrypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
}

/** A positive number of 15 random bytes: two certificates of one authority must not share theirs (RFC 5280, 4.1.2.2). */
function serialNumber(webCrypto: Crypto): string {
  const bytes = webCrypto.getRandomValues(new Uint8Array(15));
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `01${digits}`;
}

function subject(commonName: string, organizations: readonly string[]): x509.Name {
  return new x509.Name([
    ...organizations.map((organization) => ({ O: [organization] })),
    { CN: [commonName] },
  ]);
}

function alternativeNames(request: CertificateRequest): x509.Extension[] {
  const names = [
    ...(request.dnsNames ?? []).map((value) => ({ type: "dns" as const, value })),
    ...(request.ipAddresses ?? []).map((value) => ({ type: "ip" as const, value })),
  ];
  return names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : [];
}
