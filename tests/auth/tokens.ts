/** A JWT with these claims; its signature is worth nothing. */
export function jwt(claims: unknown): string {
  const part = (value: unknown) => {
    const bytes = new TextEncoder().encode(JSON.stringify(value));
    return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
  };
  return `${part({ alg: "RS256" })}.${part(claims)}.c2ln`;
}
