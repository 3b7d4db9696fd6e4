const TEXT = { type: 'string' };

function listOf(terms: readonly string[]): object {
  const properties = Object.fromEntries(terms.map((term) => [term, TEXT]));
  return { type: 'array', items: { type: 'object', additionalProperties: false, properties } };
}

/**
 * JSON Schemas of the terms of a Bill of Lading's subject, and of those that every credential's contexts
 * define for a subject.
 */
export const SUBJECT_TERMS: Readonly<Record<string, object>> = {
  type: { type: 'array', items: TEXT },
  ...Object.fromEntries(
    [
      'scac',
      'blNumber',
      'billOfLadingName',
      'vessel',
      'voyageNo',
      'portOfLoading',
      'portOfDischarge',
      'carrierName',
      'placeOfReceipt',
      'placeOfDelivery',
      'shipperName',
      'shipperAddressStreet',
      'shipperAddressCountry',
      'consigneeName',
      'notifyPartyName',
      'links',
      'id',
      'name',
      'description',
    ].map((term) => [term, TEXT]),
  ),
  packages: listOf(['packagesDescription', 'packagesWeight', 'packagesMeasurement']),
  attachments: listOf(['data', 'filename', 'mimeType']),
};
