// The part of MPSGraph that the ATen/mps headers use, and the few operations that rehearsals need.
#pragma once

#include <MetalPerformanceShaders/MetalPerformanceShaders.h>

#pragma clang assume_nonnull begin

@interface MPSGraphObject : NSObject
@end

@interface MPSGraphTensor : MPSGraphObject <NSCopying>
@property(readonly, nonatomic, nullable) MPSShape* shape;
@property(readonly, nonatomic) MPSDataType dataType;
@end

@interface MPSGraphTensorData : MPSGraphObject
@property(readonly, nonatomic) MPSShape* shape;
@property(readonly, nonatomic) MPSDataType dataType;
- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer shape:(MPSShape*)shape dataType:(MPSDataType)dataType;
- (instancetype)initWithMPSNDArray:(MPSNDArray*)ndarray;
@end

@interface MPSGraphExecutionDescriptor : MPSGraphObject
@end

@interface MPSGraphCompilationDescriptor : MPSGraphObject <NSCopying>
@end

@interface MPSGraph : MPSGraphObject
- (instancetype)init;
- (MPSGraphTensor*)placeholderWithShape:(nullable MPSShape*)shape
                               dataType:(MPSDataType)dataType
                                   name:(nullable NSString*)name;
- (MPSGraphTensor*)constantWithScalar:(double)scalar dataType:(MPSDataType)dataType;
- (MPSGraphTensor*)castTensor:(MPSGraphTensor*)tensor toType:(MPSDataType)type name:(nullable NSString*)name;
- (MPSGraphTensor*)exponentWithTensor:(MPSGraphTensor*)tensor name:(nullable NSString*)name;
- (MPSGraphTensor*)logarithmWithTensor:(MPSGraphTensor*)tensor name:(nullable NSString*)name;
- (MPSGraphTensor*)tanhWithTensor:(MPSGraphTensor*)tensor name:(nullable NSString*)name;
- (MPSGraphTensor*)reLUWithTensor:(MPSGraphTensor*)tensor name:(nullable NSString*)name;
- (MPSGraphTensor*)softMaxWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(nullable NSString*)name;
- (MPSGraphTensor*)additionWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                             secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                        name:(nullable NSString*)name;
- (MPSGraphTensor*)subtractionWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                           name:(nullable NSString*)name;
- (MPSGraphTensor*)multiplicationWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                   secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                              name:(nullable NSString*)name;
- (MPSGraphTensor*)reductionMaximumWithTensor:(MPSGraphTensor*)tensor
                                         axis:(NSInteger)axis
                                         name:(nullable NSString*)name;
- (MPSGraphTensor*)reductionSumWithTensor:(MPSGraphTensor*)tensor
                                     axis:(NSInteger)axis
                                     name:(nullable NSString*)name;
@end

#pragma clang assume_nonnull end
