/** A kind of transferable document: its identifier in the path and in `renderMethod.templateName`. */
export type DocumentType = 'BILL_OF_LADING';

/**
 * The supported document type that a path parameter names, case-insensitively, or undefined
 * (docs/specification.md 2.1).
 */
export function findDocumentType(documentId: string): DocumentType | undefined {
  return documentId.toUpperCase() === 'BILL_OF_LADING' ? 'BILL_OF_LADING' : undefined;
}
